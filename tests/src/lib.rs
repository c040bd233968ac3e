//! What the guest suite's modules share: the devices of a guest, and files that stand
//! between a channel and the kernel.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test that cannot go on panics"
)]

mod acm_daemon;
mod device;
mod message_buffers;
pub mod modify_qp;
mod pair;
mod random;
mod recording_queue_pair;
mod refusing_queue_pair;
pub mod scenarios;
mod site;

pub use acm_daemon::{AcmDaemon, Action, acm_entry};
pub use device::{CorruptedResponses, Counting, LosingGroups, OldKernel, Unestablished};
pub use message_buffers::{post_message, receive, send};
pub use pair::{Listening, Pair, PendingRequest, Side};
pub use random::{Random, seeds};
pub use recording_queue_pair::RecordingQueuePair;
pub use refusing_queue_pair::{RefusingQueuePair, refusal};
pub use site::{
    FIRST_PORT, PATIENCE, PLAIN, SECOND, Site, Soft, UNROUTABLE, expect, free_port, free_ports,
    free_qp_number,
};
