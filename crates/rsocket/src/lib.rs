//! The protocol of rsockets, without I/O.
//!
//! rsockets, a part of librdmacm, carry a byte stream over a reliable connected queue pair. Each
//! side announces parts of its receive buffer. The other side writes into the announced memory, and
//! reports each write with a message of 32 bits. This crate is that protocol as a state machine of
//! numbers: it owns no memory, makes no system call and knows no device. It is for authors of RDMA
//! stacks that have queue pairs of their own.
//!
//! * [`Handshake`] is the private data of the connect request and of the reply.
//! * [`Message`] is what each write reports: as immediate data, or in a message of its own
//!   ([`Transport`]).
//! * [`Sender`] decides where the next bytes go in the peer's memory, by the peer's
//!   announcements ([`Announcement`]) and credits.
//! * [`Receiver`] tracks what has arrived in this side's ring, and when to announce free
//!   memory and return credits.
//! * [`SendRing`] tracks the memory of writes that have not completed.
//! * [`Shutdown`] is which directions are still open.
//!
//! rsockets carry datagrams as well: [`DatagramHeader`] stands in front of each one between
//! queue pairs, and by [`ResolutionMessage`]s over UDP the sockets learn their numbers.
//!
//! `Sender` and `Receiver` share nothing, so that one thread may write while another one
//! reads.
//!
//! Numbers on the wire are big-endian unless their documentation says otherwise. Source:
//! librdmacm's `rsocket.c`.

mod announcement;
mod byte_order;
mod credits;
mod datagram_header;
mod error;
mod handshake;
mod map_entry;
mod message;
mod receiver;
mod resolution_message;
mod send_ring;
mod sender;
mod shutdown;
mod transport;

pub use announcement::{ANNOUNCEMENT_SIZE, Announcement};
pub use byte_order::ByteOrder;
pub use datagram_header::{DATAGRAM_BUFFER, DatagramHeader};
pub use error::{HandshakeError, ProtocolError};
pub use handshake::{
    HANDSHAKE_SIZE, Handshake, MAX_MAP_ENTRIES, RemoteTable, TABLE_ENTRIES, VERSION,
};
pub use map_entry::{MAP_ENTRY_SIZE, MapEntry};
pub use message::{Control, MAX_DATA, Message};
pub use receiver::{Received, Receiver, Update};
pub use resolution_message::{ResolutionKind, ResolutionMessage};
pub use send_ring::SendRing;
pub use sender::{AnnouncementTable, Sender, Write};
pub use shutdown::{How, Shutdown};
pub use transport::Transport;

/// The examples of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
