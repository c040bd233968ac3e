//! The types of both faces.
//!
//! Steps are types, so calls out of order do not compile, and each type says by
//! its [`Mode`](crate::Mode) whether its steps block or are awaited:
//! [`rdmacm`](crate) names the blocking ones, `rdmacm::tokio` and
//! [`rdmacm::asynchronous`](crate::asynchronous) the others.

mod connection;
mod connector;
#[cfg(feature = "verbs")]
mod endpoint;
mod incoming;
mod listener;
mod resolved;
mod stopper;

pub use connection::Connection;
pub use connector::Connector;
#[cfg(feature = "verbs")]
pub use endpoint::{Endpoint, ListeningEndpoint};
pub use incoming::Incoming;
pub use listener::{Listener, ListenerOptions, Requests};
pub use resolved::Resolved;
pub use stopper::Stopper;

pub use crate::node::Node;
