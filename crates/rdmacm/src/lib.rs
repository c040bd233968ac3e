//! The Linux RDMA connection manager in pure Rust.
//!
//! * **Blocking**, here: [`Connector`] and [`Listener`] make connections. Connecting, accepting
//!   and closing have deadlines; transfers have one if you set it.
//! * **Asynchronous**: mostly the same names and methods in `tokio` (feature `tokio`), or for any
//!   runtime in [`asynchronous`].
//! * **Events**: [`core`] is the kernel's interface, for event loops: event channels, connection
//!   identifiers (`rdma_cm_id`) and a method for each command.
//!
//! [`addrinfo`] resolves names to RDMA addresses, by the system's name resolver or one in pure Rust
//! (feature `hickory`).
//!
//! What connects or listens uses a [`Node`]: an event channel and its event loop. Pass one to share it
//! (`with_node`); otherwise each connector and each listener opens its own.
//!
//! The feature `verbs`, which is on by default, adds the types that carry data on soft devices:
//! RoCE (rxe) and iWARP (siw).
//!
#![cfg_attr(
    feature = "verbs",
    doc = "
| type | carries | runs on | its peer | flow control |
|---|---|---|---|---|
| [`Connection`] | messages, one-sided reads and writes | rxe, siw | a `Connection`, or a C program that keeps the rules of [`MessageOptions`] | the program: see [`MessageOptions`] |
| [`RdmaStream`], [`RdmaListener`] | bytes, as `TcpStream` | rxe, siw | the same types, any program that uses rsockets | the library |
| [`Endpoint`] | the work requests that you post to its queue pair | rxe, siw | any connected queue pair | the program |
| [`CmConnection`] | what you post to a queue pair of any verbs library | any device, InfiniBand too | any connected queue pair | the program |
| [`DatagramSocket`] | datagrams of an unreliable datagram (UD) queue pair, to peers and multicast groups | rxe | any UD queue pair | none |
| [`RdmaDatagram`] | datagrams between IP addresses and ports, as `UdpSocket` | rxe | an `RdmaDatagram` | none |
"
)]
//!
//! ```no_run
//! # #[cfg(feature = "verbs")]
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use rdmacm::{CLOSE_DEADLINE, Connector};
//!
//! let connection = Connector::new("storage-7:7471")
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
//! Queue pairs may come from any other library, if its type implements
//! [`QueuePair`](core::QueuePair). Pass a function that creates a queue pair for an id
//! ([`QueuePairFactory`]); the connection is then a [`CmConnection`].
//!
//! ```no_run
//! use std::time::Duration;
//! use rdmacm::{CLOSE_DEADLINE, CmConnection, Connector, Listener};
//! use rdmacm::core::IdHandle;
//! # fn example<Q: rdmacm::core::QueuePair + 'static>(
//! #     create: impl Fn(&IdHandle) -> std::io::Result<Q> + Send + Sync,
//! #     serve: impl Fn(CmConnection<Q>) + Sync,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//!
//! // One side, with `create` a function from an id to a queue pair.
//! let connection = Connector::new("storage-7:7471")
//!     .deadline(Duration::from_secs(3))
//!     .private_data(b"hello, version 1")?
//!     .connect_with(&create)?;
//! connection.close(CLOSE_DEADLINE)?;
//!
//! // The other side: a thread for each peer, so that one that is silent delays no other.
//! let listener = Listener::bind("[::]:7471")?;
//! std::thread::scope(|scope| {
//!     for incoming in listener.incoming() {
//!         scope.spawn(|| {
//!             let served = incoming.and_then(|incoming| {
//!                 if incoming.private_data().starts_with(b"hello") {
//!                     incoming.accept_with(&create).map(&serve)
//!                 } else {
//!                     incoming.reject(b"unknown version")
//!                 }
//!             });
//!             served.inspect_err(|error| eprintln!("{error}"))
//!         });
//!     }
//! });
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `verbs` (default) | messages, byte streams, one-sided access and endpoints on rxe and siw devices, datagrams on rxe |
//! | `tokio` | `rdmacm::tokio`, the async types on tokio; enables `stream` |
//! | `stream` | `futures_core::Stream` for `Listener::incoming` and `RdmaListener::incoming` |
//! | `futures-io` | `futures_io`'s traits for byte streams on any runtime |
//! | `hickory` | `addrinfo::HickoryResolver`, a name resolver in pure Rust |
//! | `tracing` | spans and events for the crate `tracing` |
//!
//! Needs Linux 6.1 or newer and Rust 1.85 or newer; queue pairs of siw need an x86 processor.

#![cfg_attr(
    not(feature = "verbs"),
    allow(dead_code, unused_imports, reason = "what only the data modules use")
)]

pub mod asynchronous;
mod attempt;
mod blocking;
mod blocking_executor;
mod bounded_map;
#[cfg(feature = "verbs")]
mod busy_polling;
mod close_reason;
mod connect;
#[cfg(feature = "verbs")]
mod data;
#[cfg(feature = "verbs")]
pub mod datagrams;
#[cfg(feature = "verbs")]
mod endpoint;
mod error;
mod established;
mod event_loop;
mod failed_request;
#[cfg(test)]
mod forked_id_tests;
mod id_options;
mod listen;
#[cfg(feature = "verbs")]
mod messages;
mod neighbours;
mod queue_pair_factory;
mod retry;
#[cfg(feature = "verbs")]
mod reunite_error;
#[cfg(feature = "verbs")]
mod rsocket_datagrams;
mod runtime;
mod stage;
mod stop_group;
mod stop_handle;
#[cfg(feature = "verbs")]
mod stream;
mod sync;
#[cfg(feature = "tokio")]
pub mod tokio;
#[cfg(feature = "tracing")]
mod trace;
#[cfg(not(feature = "tracing"))]
#[path = "no_trace.rs"]
mod trace;

pub use rdmacm_addrinfo as addrinfo;
pub use rdmacm_core as core;
#[cfg(feature = "verbs")]
pub use rdmacm_rsocket as rsocket;
#[cfg(feature = "verbs")]
pub use rdmacm_verbs as verbs;

pub use blocking::*;
pub use blocking_executor::{
    BlockingExecutor, BlockingTask, DEFAULT_MAX_HANDSHAKES, THREAD_IDLE_TIME, ThreadExecutor,
};
pub use close_reason::CloseReason;
pub use connect::{
    ACCEPT_DEADLINE, CLOSE_DEADLINE, CONNECT_DEADLINE, CONNECTION_ATTEMPT_DELAY, PeerAddr,
};
#[cfg(feature = "verbs")]
pub use datagrams::{Datagram, DatagramAddr, DatagramPeer};
pub use error::{Cause, Error, Result};
pub use failed_request::FailedRequest;
#[cfg(feature = "verbs")]
pub use messages::{Message, MessageOptions, RegisteredBuffer, TransferError, TrySent};
pub use queue_pair_factory::QueuePairFactory;
pub use retry::RetryPolicy;
#[cfg(feature = "verbs")]
pub use reunite_error::ReuniteError;
pub use stage::Stage;
pub use stop_group::StopGroup;
pub use stop_handle::StopHandle;
#[cfg(feature = "verbs")]
pub use stream::{SendSlot, StreamOptions};

/// The examples of the documents, compiled.
#[cfg(all(doctest, feature = "verbs"))]
mod documents {
    #[cfg(feature = "tokio")]
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../README.md")]
    struct CrateReadme;
    #[doc = include_str!("../../../docs/tutorial.md")]
    struct Tutorial;
    #[doc = include_str!("../../../docs/how-to/datagrams.md")]
    struct Datagrams;
    #[doc = include_str!("../../../docs/how-to/event-loop.md")]
    struct EventLoop;
    #[doc = include_str!("../../../docs/how-to/handle-errors.md")]
    struct HandleErrors;
    #[doc = include_str!("../../../docs/how-to/queue-pairs.md")]
    struct QueuePairs;
    #[doc = include_str!("../../../docs/how-to/serve-many-clients.md")]
    struct ServeManyClients;
    #[doc = include_str!("../../../docs/how-to/share-memory.md")]
    struct ShareMemory;
    #[cfg(feature = "tokio")]
    #[doc = include_str!("../../../docs/how-to/shut-down.md")]
    struct ShutDown;
    #[cfg(feature = "tokio")]
    #[doc = include_str!("../../../docs/streams.md")]
    struct Streams;
    #[doc = include_str!("../../../docs/how-to/talk-to-c-programs.md")]
    struct TalkToCPrograms;
    #[doc = include_str!("../../../docs/how-to/test-without-a-device.md")]
    struct TestWithoutADevice;
    #[doc = include_str!("../../../docs/how-to/timeouts-and-retries.md")]
    struct TimeoutsAndRetries;
}
