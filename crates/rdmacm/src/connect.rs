//! Connecting: from a name to an established connection, with any queue pair.
//!
//! [`ConnectAttempts`] resolves the name and races the addresses; [`resolve`] and
//! [`handshake`] take one address to an [`Established`](crate::established::Established).

mod attempts;
mod config;
mod handshake;
mod peer;
mod race;
mod resolve;
mod source_address;
mod target;

pub use config::{ACCEPT_DEADLINE, CLOSE_DEADLINE, CONNECT_DEADLINE, CONNECTION_ATTEMPT_DELAY};
pub use peer::PeerAddr;

pub(crate) use attempts::ConnectAttempts;
pub(crate) use config::ConnectConfig;
pub(crate) use handshake::handshake;
pub(crate) use resolve::{Routed, resolve, resolve_address, wait_for_event};
pub(crate) use source_address::SourceAddress;
pub(crate) use target::ConnectTarget;
