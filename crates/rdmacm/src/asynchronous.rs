//! The asynchronous face, for any runtime.
//!
//! The names and steps of the blocking face, with `.await`. Nothing here depends
//! on a runtime: [`Runtime`] is what it takes of one. For tokio it is there, in
//! `rdmacm::tokio`.
//!
//! Any number of ids share one event channel (a [`Node`]) without a thread
//! behind it: whichever task is polled while there is something to read reads
//! it and wakes those it is for. A future may be dropped at any time: one that
//! owns its step (all that take `self`) ends it, id and queue pair included; one
//! that borrows has only waited, and what it waited for is there for the next.
//! A future that is not polled any more but not dropped either may hold up
//! others of the same node, like a lock that is not released.

use crate::face;
use crate::mode::Async;
pub use crate::reactor::{Reactor, Runtime, Sleep};

/// [`face::Connection`] whose steps are awaited.
pub type Connection<Q, R> = face::Connection<Q, Async<R>>;
/// [`face::Connector`] whose steps are awaited.
pub type Connector<R> = face::Connector<Async<R>>;
/// [`DatagramSocket`](crate::datagrams::DatagramSocket) whose steps are awaited.
#[cfg(feature = "verbs")]
pub type DatagramSocket<R> = crate::datagrams::DatagramSocket<Async<R>>;
/// [`face::Endpoint`] whose steps are awaited.
#[cfg(feature = "verbs")]
pub type Endpoint<R> = face::Endpoint<Resolved<R>>;
/// [`face::Incoming`] whose steps are awaited.
pub type Incoming<R> = face::Incoming<Async<R>>;
/// [`face::Listener`] whose steps are awaited.
pub type Listener<R> = face::Listener<Async<R>>;
/// [`face::ListeningEndpoint`] whose steps are awaited.
#[cfg(feature = "verbs")]
pub type ListeningEndpoint<R> = face::ListeningEndpoint<Async<R>>;
/// [`face::Node`] whose steps are awaited.
pub type Node<R> = face::Node<Async<R>>;
/// [`face::Resolved`] whose steps are awaited.
pub type Resolved<R> = face::Resolved<Async<R>>;
