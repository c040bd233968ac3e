//! Datagrams that speak the rsocket protocol of librdmacm.
//!
//! A socket has a datagram queue pair, which carries the datagrams, and a UDP socket of the same
//! address and port, by which sockets learn the numbers of each other's queue pairs: a datagram
//! to a peer whose number is unknown travels over UDP, and the peer replies with the number.
//!
//! [`Peers`](peers::Peers) decides on the route of each datagram,
//! [`ResolutionService`](resolution_service::ResolutionService) is the UDP socket, and
//! [`Socket`] both and the queue pair.

mod address;
mod bind;
mod path;
mod peers;
mod resolution_service;
mod socket;
mod wait;

pub(crate) use bind::{DatagramSizes, bind, bind_for};
pub(crate) use socket::Socket;
