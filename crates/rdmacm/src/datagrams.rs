//! Unreliable datagrams: a socket of one RDMA device, the addresses datagrams go to and
//! come from, and multicast groups.
//!
//! [`DatagramSocket`] is to RDMA what `UdpSocket` is to UDP: [bind] it, [send to] an
//! address, [receive from] whoever sends, [join] a group. What differs:
//!
//! * A socket is of one device, so it is bound to an address of that, or made
//!   [for a peer](DatagramSocket::connect).
//! * An address is a port's GID or LID, a queue pair's number and a queue key
//!   ([`DatagramAddr`]): it comes from a [datagram](Datagram::sender), from a
//!   [group](DatagramSocket::join_multicast), or from [asking](DatagramSocket::resolve)
//!   the peer by its IP address and port, which is what "connecting" a datagram id of the
//!   connection manager is (SIDR).
//! * A datagram is no longer than the path's MTU
//!   ([`max_datagram`](DatagramSocket::max_datagram)); what finds no room at the receiver
//!   is lost, and nobody is told.
//!
//! iWARP has no datagrams.
//!
//! ```no_run
//! # fn example() -> rdmacm::Result<()> {
//! use std::time::Duration;
//! use rdmacm::DatagramSocket;
//!
//! // One side answers whoever sends.
//! let server = DatagramSocket::bind("10.1.0.7:7174")?;
//! let datagram = server.recv_from()?;
//! if let Some(sender) = datagram.sender() {
//!     server.send_to(&datagram, &sender)?;
//! }
//!
//! // The other asks where it is, and sends.
//! let limit = Duration::from_secs(3);
//! let (client, peer) = DatagramSocket::connect("storage-7", "7174", limit)?;
//! client.set_deadline(limit);
//! client.send_to(b"ping", &peer.addr())?;
//! println!("{:?}", &client.recv_from()?[..]);
//! # Ok(())
//! # }
//! ```
//!
//! [bind]: DatagramSocket::bind
//! [send to]: DatagramSocket::send_to
//! [receive from]: DatagramSocket::recv_from
//! [join]: DatagramSocket::join_multicast

mod address;
mod address_handles;
mod datagram;
mod groups;
mod open;
mod options;
mod resolve;
mod service;
mod socket;
mod transfer;
mod wait;

pub use address::{DatagramAddr, DatagramPeer};
pub use datagram::Datagram;
pub use options::DatagramOptions;
pub use socket::DatagramSocket;
