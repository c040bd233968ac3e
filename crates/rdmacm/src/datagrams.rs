//! Unreliable datagrams: addresses, datagrams and multicast groups.
//!
//! A [`DatagramSocket`](crate::DatagramSocket) is an unreliable datagram (UD) queue pair. Its peers
//! are queue pairs, each with the GID of its port, its number and its queue key. [Bind][bind] the
//! socket, [send to] an address, [receive from] any sender, [join] a group. For peers that are IP
//! addresses and ports, as those of a `UdpSocket`, use [`RdmaDatagram`](crate::RdmaDatagram).
//!
//! * A socket is of one device, so it is bound to an address of the device, or opened
//!   [for a peer](crate::DatagramSocket::connect).
//! * An address is a port's GID or LID, the number of a queue pair and a queue key
//!   ([`DatagramAddr`]): a [datagram](Datagram::sender) has its sender's, a
//!   [group](crate::DatagramSocket::join_multicast) has one, and
//!   [resolving](crate::DatagramSocket::resolve) a peer's IP address and port returns the
//!   peer's. The connection manager calls that connecting a datagram id (SIDR).
//! * A datagram is no longer than the MTU of the socket's port
//!   ([`max_datagram`](crate::DatagramSocket::max_datagram)). A datagram without a receive
//!   request at the receiver is lost without a notice.
//!
//! iWARP has no datagrams.
//!
//! ```no_run
//! # fn example() -> rdmacm::Result<()> {
//! use std::time::Duration;
//! use rdmacm::DatagramSocket;
//!
//! // One side replies to any sender.
//! let server = DatagramSocket::bind("10.1.0.7:7174")?;
//! let datagram = server.recv_from()?;
//! if let Some(sender) = datagram.sender() {
//!     server.send_to(&datagram, &sender)?;
//! }
//!
//! // The other side resolves its address, and sends.
//! let limit = Duration::from_secs(3);
//! let (client, peer) = DatagramSocket::connect("storage-7:7174", limit)?;
//! client.set_deadline(limit);
//! client.send_to(b"ping", &peer.addr())?;
//! println!("{:?}", &client.recv_from()?[..]);
//! # Ok(())
//! # }
//! ```
//!
//! [bind]: crate::DatagramSocket::bind
//! [send to]: crate::DatagramSocket::send_to
//! [receive from]: crate::DatagramSocket::recv_from
//! [join]: crate::DatagramSocket::join_multicast

mod address;
mod address_handles;
mod config;
mod datagram;
mod groups;
mod path_addresses;
mod resolve;
mod sidr_replies;
mod socket;
mod transfer;
mod wait;

pub use address::{DatagramAddr, DatagramPeer};
pub use datagram::Datagram;

pub(crate) use config::{DatagramConfig, Filter};
pub(crate) use path_addresses::PathAddresses;
pub(crate) use resolve::resolve_peer;
pub(crate) use socket::Socket;
pub(crate) use transfer::check_length;
