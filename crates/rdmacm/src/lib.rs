//! The Linux RDMA connection manager in pure Rust.
//!
//! Three faces on one core:
//!
//! * **Blocking**, here: [`Connector`] and [`Listener`] to [`Connection`], each
//!   step with a deadline.
//! * **Async**: the same names and steps in `tokio` (feature `tokio`), or for
//!   any runtime in [`asynchronous`].
//! * **Events**: [`core`], event channels, ids and the kernel's commands one by
//!   one, for event loops.
//!
//! [`addrinfo`] turns names into RDMA addresses, by the system's resolver or one in
//! pure Rust (feature `hickory`). With the feature `verbs`, which is on unless turned
//! off, connections carry messages on soft devices, and read and write
//! the peer's memory: `Connector::connect`, `Incoming::accept` and `MessageOptions`.
//! `Endpoint` has a queue pair of that kind posted to by hand, and `DatagramSocket` sends
//! and receives unreliable datagrams, to peers and multicast groups.
//!
//! ```no_run
//! # #[cfg(feature = "verbs")]
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use rdmacm::{CLOSE_DEADLINE, Connector};
//!
//! let connection = Connector::new("storage-7", "7471")
//!     .deadline(Duration::from_secs(3))
//!     .connect()?;
//! connection.set_deadline(Duration::from_secs(1));
//! connection.send(b"ping")?;
//! println!("{:?}", connection.receive()?);
//! connection.close(CLOSE_DEADLINE)?;
//! # Ok(())
//! # }
//! ```
//!
//! All other queue pairs are the caller's: whatever library they come from, they
//! implement [`QueuePair`](core::QueuePair), and a function from an id to a queue pair
//! is where connections get them from ([`QueuePairs`]).
//!
//! ```no_run
//! use std::time::Duration;
//! use rdmacm::{Connector, Listener};
//! use rdmacm::core::IdHandle;
//! # fn example<Q: rdmacm::core::QueuePair + 'static>(
//! #     queue_pair: impl Fn(&IdHandle) -> std::io::Result<Q> + Send + Sync,
//! #     serve: impl Fn(rdmacm::Connection<Q>),
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//!
//! // One side, with `queue_pair` a function from an id to a queue pair.
//! let connection = Connector::new("storage-7", "7471")
//!     .deadline(Duration::from_secs(3))
//!     .private_data(b"hello, version 1")?
//!     .connect_with(&queue_pair)?;
//! connection.close(rdmacm::CLOSE_DEADLINE)?;
//!
//! // The other.
//! for incoming in Listener::bind("[::]:7471")?.incoming() {
//!     let incoming = incoming?;
//!     if incoming.private_data().starts_with(b"hello") {
//!         serve(incoming.accept_with(&queue_pair)?);
//!     } else {
//!         incoming.reject(b"who are you?")?;
//!     }
//! }
//! # Ok(())
//! # }
//! ```

pub mod asynchronous;
#[cfg(feature = "verbs")]
pub mod datagrams;
mod ending;
mod error;
pub mod face;
mod hub;
mod id_options;
#[cfg(feature = "verbs")]
mod messages;
mod mode;
mod node;
mod offload;
mod plan;
mod queue_pairs;
mod reactor;
mod retry;
mod step;
mod steps;
#[cfg(feature = "tokio")]
pub mod tokio;
mod trace;

pub use rdmacm_addrinfo as addrinfo;
pub use rdmacm_core as core;
#[cfg(feature = "verbs")]
pub use rdmacm_verbs as verbs;

#[cfg(feature = "verbs")]
pub use datagrams::{Datagram, DatagramAddr, DatagramPeer};
pub use ending::Ending;
pub use error::{Cause, Error, Result};
pub use face::Stopper;
#[cfg(feature = "verbs")]
pub use messages::{Failed, Loan, Message, MessageOptions, Messages};
pub use mode::{Async, Blocking, Mode};
pub use node::NodeOptions;
pub use offload::{Job, MAX_HANDSHAKES, Offload, Threads};
pub use plan::{ACCEPT_DEADLINE, CLOSE_DEADLINE, CONNECT_DEADLINE, STAGGER};
pub use queue_pairs::QueuePairs;
pub use retry::RetryPolicy;
pub use step::Step;

/// A connection, see [`face::Connection`].
#[cfg(feature = "verbs")]
pub type Connection<Q = Messages> = face::Connection<Q, Blocking>;
/// A connected queue pair, see [`face::Connection`].
#[cfg(not(feature = "verbs"))]
pub type Connection<Q> = face::Connection<Q, Blocking>;
/// How to connect, see [`face::Connector`].
pub type Connector = face::Connector<Blocking>;
/// Datagrams of one device, see [`datagrams::DatagramSocket`].
#[cfg(feature = "verbs")]
pub type DatagramSocket = datagrams::DatagramSocket<Blocking>;
/// A peer that is resolved and a queue pair for it, see [`face::Endpoint`].
#[cfg(feature = "verbs")]
pub type Endpoint = face::Endpoint<Resolved>;
/// A peer that wants to connect, see [`face::Incoming`].
pub type Incoming = face::Incoming<Blocking>;
/// Waits for peers, see [`face::Listener`].
pub type Listener = face::Listener<Blocking>;
/// Waits for peers with queue pairs, see [`face::ListeningEndpoint`].
#[cfg(feature = "verbs")]
pub type ListeningEndpoint = face::ListeningEndpoint<Blocking>;
/// What connectors and listeners share, see [`face::Node`].
pub type Node = face::Node<Blocking>;
/// A peer whose address and route are resolved, see [`face::Resolved`].
pub type Resolved = face::Resolved<Blocking>;

/// The README's examples, compiled.
#[cfg(all(doctest, feature = "verbs"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The how-to's examples, compiled.
#[cfg(all(doctest, feature = "verbs"))]
#[doc = include_str!("../../../docs/datagrams.md")]
struct Datagrams;
