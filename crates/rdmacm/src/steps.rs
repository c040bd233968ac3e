//! The steps to a connection and from it, for both faces: futures that the
//! blocking face runs on the calling thread.

mod active;
mod attempt;
#[cfg(feature = "verbs")]
pub(crate) mod by_hand;
mod carried;
#[cfg(feature = "verbs")]
pub(crate) mod carry;
mod close;
mod dial;
mod passive;
mod race;
mod source;
mod way;

#[cfg(feature = "verbs")]
pub(crate) use active::arrived;
pub(crate) use active::{Routed, connect, resolve};
pub(crate) use attempt::Attempt;
pub(crate) use carried::Carried;
pub(crate) use close::{close, ended};
pub(crate) use dial::{Dial, Peer};
pub(crate) use passive::{establish, listen, next_request};
pub(crate) use source::Source;
pub(crate) use way::Way;

use rdmacm_core::ConnInfo;

use crate::hub::Tracked;

/// A connection that both sides have agreed to.
#[derive(Debug)]
pub(crate) struct Established {
    pub(crate) tracked: Tracked,
    /// What the peer said of itself.
    pub(crate) peer: Option<ConnInfo>,
    pub(crate) private_data: Vec<u8>,
}
