//! The blocking types, which the crate's root names: each call returns when it is done.
//!
//! The files in `modes` are compiled twice, here and in [`asynchronous`](crate::asynchronous).
//! Their macros `by_mode` and `waits` are the difference.

#![expect(clippy::duplicate_mod, reason = "one source for both modes")]

/// An item whose documentation depends on the mode.
macro_rules! by_mode {
    (
        $(#[$doc:meta])*
        blocking { $(#[$blocking:meta])* }
        awaited { $(#[$awaited:meta])* }
        $(both { $(#[$more:meta])* })?
        $(#[$attribute:meta])*
        pub $($item:tt)+
    ) => {
        $(#[$doc])*
        $(#[$blocking])*
        $($(#[$more])*)?
        $(#[$attribute])*
        pub $($item)+
    };
}

/// A method that waits: `event_loop => future`, unless there is an outcome at once. With
/// `let rest = …;` it first tries without the event loop: `Ok` is the outcome, `Err` what is left to
/// wait for.
macro_rules! waits {
    (
        $(#[$doc:meta])*
        $(blocking { $(#[$blocking:meta])* })?
        $(awaited { $(#[$awaited:meta])* })?
        $(both { $(#[$more:meta])* })?
        pub fn $name:ident $(<$generic:ident: $bound:path $(, $life:lifetime)?>)? ($($arguments:tt)*) -> $result:ty {
            $(let $rest:ident = $begun:expr;)?
            $event_loop:expr => $future:expr $(, at_once: $outcome:expr)?
        }
    ) => {
        $(#[$doc])*
        $($(#[$blocking])*)?
        $($(#[$more])*)?
        pub fn $name $(<$generic: $bound $(+ $life)?>)? ($($arguments)*) -> $result {
            $(if let Some(outcome) = $outcome {
                return outcome;
            })?
            $(let $rest = match $begun {
                Ok(outcome) => return outcome,
                Err(rest) => rest,
            };)?
            let event_loop = std::sync::Arc::clone($event_loop);
            crate::event_loop::block_on(&event_loop, $future)
        }
    };
}

/// A method that waits on a node, which it opens first: `node => future`.
macro_rules! waits_on_node {
    (
        $(#[$doc:meta])*
        $(blocking { $(#[$blocking:meta])* })?
        $(awaited { $(#[$awaited:meta])* })?
        $(both { $(#[$more:meta])* })?
        pub fn $name:ident $(<$generic:ident: $bound:path $(, $life:lifetime)?>)? ($($arguments:tt)*) -> $result:ty {
            let $node:ident = $open:expr;
            $future:expr
        }
    ) => {
        $(#[$doc])*
        $($(#[$blocking])*)?
        $($(#[$more])*)?
        pub fn $name $(<$generic: $bound $(+ $life)?>)? ($($arguments)*) -> $result {
            let $node = $open?;
            crate::event_loop::block_on(&$node.event_loop, $future)
        }
    };
}

#[path = "modes/cm_connection.rs"]
mod cm_connection;
#[path = "modes/connector.rs"]
mod connector;
#[path = "modes/incoming.rs"]
mod incoming;
mod incoming_requests;
#[path = "modes/listener.rs"]
mod listener;
#[path = "modes/listener_options.rs"]
mod listener_options;
#[path = "modes/node.rs"]
mod node;
#[path = "modes/node_options.rs"]
mod node_options;
#[path = "modes/resolved.rs"]
mod resolved;
mod resolving;
mod runtime_choice;

#[cfg(feature = "verbs")]
#[path = "modes/connection.rs"]
mod connection;
#[cfg(feature = "verbs")]
#[path = "modes/datagram_options.rs"]
mod datagram_options;
#[cfg(feature = "verbs")]
#[path = "modes/datagram_socket.rs"]
mod datagram_socket;
#[cfg(feature = "verbs")]
#[path = "modes/endpoint.rs"]
mod endpoint;
#[cfg(feature = "verbs")]
#[path = "modes/halves.rs"]
mod halves;
#[cfg(feature = "verbs")]
#[path = "modes/in_place_reader.rs"]
mod in_place_reader;
#[cfg(feature = "verbs")]
mod in_place_reader_io;
#[cfg(feature = "verbs")]
mod incoming_streams;
#[cfg(feature = "verbs")]
mod listener_io;
#[cfg(feature = "verbs")]
#[path = "modes/listening_endpoint.rs"]
mod listening_endpoint;
#[cfg(feature = "verbs")]
#[path = "modes/mapped_memory.rs"]
mod mapped_memory;
#[cfg(feature = "verbs")]
#[path = "modes/message_connect.rs"]
mod message_connect;
#[cfg(feature = "verbs")]
#[path = "modes/rdma_datagram.rs"]
mod rdma_datagram;
#[cfg(feature = "verbs")]
#[path = "modes/rdma_datagram_options.rs"]
mod rdma_datagram_options;
#[cfg(feature = "verbs")]
#[path = "modes/rdma_listener.rs"]
mod rdma_listener;
#[cfg(feature = "verbs")]
#[path = "modes/rdma_stream.rs"]
mod rdma_stream;
#[cfg(feature = "verbs")]
#[path = "modes/stream_halves.rs"]
mod stream_halves;
#[cfg(feature = "verbs")]
mod stream_io;
#[cfg(feature = "verbs")]
#[path = "modes/transfer.rs"]
mod transfer;
#[cfg(feature = "verbs")]
#[path = "modes/verbs_connection.rs"]
mod verbs_connection;

pub use cm_connection::CmConnection;
pub use connector::Connector;
pub use incoming::Incoming;
pub use incoming_requests::IncomingRequests;
pub use listener::Listener;
pub use listener_options::ListenerOptions;
pub use node::Node;
pub use node_options::NodeOptions;
pub use resolved::Resolved;

#[cfg(feature = "verbs")]
pub use {
    connection::Connection,
    datagram_options::DatagramOptions,
    datagram_socket::DatagramSocket,
    endpoint::{Endpoint, IncomingEndpoint},
    halves::{ReceiveHalf, SendHalf},
    in_place_reader::InPlaceReader,
    incoming_streams::IncomingStreams,
    listening_endpoint::ListeningEndpoint,
    rdma_datagram::RdmaDatagram,
    rdma_datagram_options::RdmaDatagramOptions,
    rdma_listener::RdmaListener,
    rdma_stream::RdmaStream,
    stream_halves::{OwnedReadHalf, OwnedWriteHalf},
    transfer::Transfer,
};
