//! The asynchronous types: the names of the blocking types, with `async` methods where those wait.
//! Streams and listeners have no `set_nonblocking`, timeouts or descriptors here, but `try_` and
//! `poll_` methods, `readable` and `writable`. `RdmaStream::shutdown` is `shut_down` here, because
//! `AsyncWriteExt` has a `shutdown` of its own.
//!
//! Nothing here depends on a runtime: [`NodeOptions::runtime`] selects one, by the trait
//! [`Runtime`]. With the feature `tokio` it is tokio by default, and `rdmacm::tokio` has the
//! same types.
//!
//! Any number of ids share the event channel of a [`Node`], which has no thread of its own:
//! whichever task is polled while the channel is readable reads the events, and wakes the tasks
//! that wait for them.
//!
//! # Cancellation
//! A future may be dropped at any time, in a `select!` for example. A method is cancel safe, in
//! tokio's sense, if a loop may drop its future and call the method again without loss:
//!
//! | future of | cancel safe | if it is dropped before it is ready |
//! |---|---|---|
//! | `accept` of a listener, `next`, `receive`, `recv`, `recv_from`, `next_received`, `next_sent`, `peek`, `read` of a stream | yes | nothing is lost: the next call gets what comes |
//! | `send`, `send_vectored`, `send_to`, `send_to_with_immediate`, `write` and `reserve` of a stream, `write_at`, `map` | yes | nothing was sent, written, reserved or mapped |
//! | `start_send`, `start_read`, `start_write` | no: the memory is freed | nothing was posted |
//! | `send_buffer`, `read` and `write` of a connection, `Transfer::wait` | no | the request may be carried out; its memory stays with the queue pair until the device is done with it |
//! | `write_all_at`, and methods of extension traits that read or write several times, such as `read_exact` and `write_all` | no | some of the bytes may have been read or written |
//! | `flush`, `closed`, `readable`, `writable`, `drive`, `wait_for_dropped_streams`, `resolve` of a node or a socket | yes | nothing happens; a name is looked up to the end |
//! | `connect`, `resolve` of a connector, `accept` and others that make a connection of what they take | no | the id and the queue pair are destroyed, and the peer is rejected or disconnected |
//! | `close` of a connection | no | the connection may be disconnected already |
//! | `close` of a stream | no | the stream is closed as if it was dropped |
//! | `join_multicast` | no | the socket leaves the group again |
//!
//! # What blocks
//! Opening a node waits on the calling thread for a missing `/dev/infiniband/rdma_cm`, five seconds at
//! the most, and within the deadline of a connector that has no node. So open one [`Node`] at the start,
//! and share it. Creating queue pairs, which a [`QueuePairFactory`](crate::QueuePairFactory) does where a
//! task connects or accepts, registering memory, `bind`, `reject`, `migrate`, and dropping what was made
//! are system calls on the calling thread. What takes long in the kernel, such as the TCP handshake of
//! iWARP, runs on the node's [`BlockingExecutor`](crate::BlockingExecutor).
//!
//! # Sharing a node
//! Do not keep a future that you neither poll nor drop: it may block other futures of its node,
//! like a lock that is not released. While a task runs [`Node::drive`], it blocks only those that
//! wait for the same: the next request of a listener, a message or a free send request of a
//! connection, or a handshake within [`NodeOptions::max_handshakes`].
//!
//! This does not apply to tasks that call `poll_` methods, that read and write through the traits
//! of tokio or futures, or that poll `incoming()` as a `Stream`: they may stop polling at any time.
//! But if only such tasks wait on a node, each event wakes all of them; if there are many, spawn
//! [`Node::drive`].
//!
//! The runtime that opened a node must be running while anything waits on the node: a
//! current-thread runtime of tokio runs only inside `block_on`. Otherwise waits of other runtimes,
//! and their deadlines, do not end.

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
        $(#[$awaited])*
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
        $($(#[$awaited])*)?
        $($(#[$more])*)?
        pub async fn $name $(<$generic: $bound $(+ $life)?>)? ($($arguments)*) -> $result {
            crate::asynchronous::cooperation::consume_budget().await;
            $(if let Some(outcome) = $outcome {
                return outcome;
            })?
            $(let $rest = match $begun {
                Ok(outcome) => return outcome,
                Err(rest) => rest,
            };)?
            // The event loop is the one of the future.
            let _ = $event_loop;
            $future.await
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
        $($(#[$awaited])*)?
        $($(#[$more])*)?
        pub async fn $name $(<$generic: $bound $(+ $life)?>)? ($($arguments)*) -> $result {
            let $node = $open?;
            $future.await
        }
    };
}

#[path = "modes/cm_connection.rs"]
mod cm_connection;
#[path = "modes/connector.rs"]
mod connector;
mod cooperation;
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

#[cfg(not(feature = "tokio"))]
#[path = "asynchronous/no_default_runtime.rs"]
mod default_runtime;
#[cfg(feature = "tokio")]
#[path = "asynchronous/tokio_runtime.rs"]
mod default_runtime;
#[cfg(feature = "stream")]
mod incoming_stream;

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
#[cfg(all(feature = "verbs", any(feature = "futures-io", feature = "tokio")))]
#[path = "modes/in_place_reader.rs"]
mod in_place_reader;
#[cfg(all(feature = "verbs", any(feature = "futures-io", feature = "tokio")))]
mod in_place_reader_io;
#[cfg(feature = "verbs")]
mod incoming_streams;
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
mod poll;
mod poll_accept;
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
#[cfg(all(feature = "verbs", feature = "futures-io"))]
mod stream_futures;
#[cfg(feature = "verbs")]
#[path = "modes/stream_halves.rs"]
mod stream_halves;
#[cfg(feature = "verbs")]
mod stream_io;
#[cfg(all(feature = "verbs", feature = "tokio"))]
mod stream_tokio;
#[cfg(all(feature = "verbs", any(feature = "tokio", feature = "futures-io")))]
mod stream_traits;
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

pub use crate::runtime::{Reactor, Runtime};

#[cfg(all(feature = "verbs", any(feature = "futures-io", feature = "tokio")))]
pub use in_place_reader::InPlaceReader;
#[cfg(feature = "verbs")]
pub use {
    connection::Connection,
    datagram_options::DatagramOptions,
    datagram_socket::DatagramSocket,
    endpoint::{Endpoint, IncomingEndpoint},
    halves::{ReceiveHalf, SendHalf},
    incoming_streams::IncomingStreams,
    listening_endpoint::ListeningEndpoint,
    rdma_datagram::RdmaDatagram,
    rdma_datagram_options::RdmaDatagramOptions,
    rdma_listener::RdmaListener,
    rdma_stream::RdmaStream,
    stream_halves::{OwnedReadHalf, OwnedWriteHalf},
    transfer::Transfer,
};
