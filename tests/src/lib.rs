//! What the guest suites share: the fabric of a guest, and devices that stand
//! between a channel and the kernel.
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test that cannot go on panics"
)]

mod acm_daemon;
pub mod by_hand;
mod device;
mod pair;
mod paper;
mod posted;
mod random;
mod site;

pub use acm_daemon::{AcmDaemon, Act, acm_entry};
pub use device::{Counting, Garbling, LosingGroups, OldKernel, Unestablished};
pub use pair::{Asked, Listening, Pair, Side};
pub use paper::PaperQueuePair;
pub use posted::{post_message, receive, send};
pub use random::{Random, seeds};
pub use site::{
    FIRST_PORT, PATIENCE, PLAIN, SECOND, Site, Soft, UNROUTABLE, expect, free_port, free_ports,
    free_qp_number,
};
