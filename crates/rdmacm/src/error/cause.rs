//! What went wrong.

use std::fmt;
use std::io;

use rdmacm_addrinfo as addrinfo;
use rdmacm_core::{self as core, ErrnoName, EventFailure, EventKind};

use crate::close_reason::CloseReason;
use crate::event_loop::TaskLost;
use crate::failed_request::FailedRequest;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The kernel refused a command, or this library refused an argument before.
    #[error("{}", Refusal(.0))]
    Refused(core::Error),
    /// The kernel reported a failure, or an event that ends the attempt because it came before the
    /// connection was established, such as `ADDR_CHANGE`.
    #[error(transparent)]
    Event(EventFailure),
    /// The asynchronous runtime does not watch the node's descriptor.
    #[error("the runtime does not watch the event channel: {0}")]
    Runtime(io::Error),
    /// The [`BlockingExecutor`](crate::BlockingExecutor) of the node has dropped a command instead
    /// of running it.
    #[error("the blocking executor has dropped the command")]
    CommandDropped,
    /// The peer gave up before the connection was established, or has ended it since.
    #[error("the peer is gone")]
    PeerGone,
    /// The deadline passed. Connecting and accepting were cancelled; a transfer that was posted
    /// goes on, and a wait can be repeated.
    #[error("the deadline passed")]
    Deadline,
    /// The deadline passed while this many TCP handshakes were in flight, which is the limit
    /// of the node ([`NodeOptions::max_handshakes`](crate::NodeOptions::max_handshakes)), or a quarter
    /// of it: with this peer, by callers that have given up. Handshakes with hosts that do not answer
    /// end when TCP gives up.
    #[error("{0} TCP handshakes of this node were in flight until the deadline")]
    TooManyHandshakes(usize),
    /// The name could not be resolved.
    #[error(transparent)]
    Name(addrinfo::Error),
    /// There is no address to connect to: a list was empty, or had none for this type of queue
    /// pair.
    #[error(
        "no address to connect to: the list is empty, passive, or for another type of queue pair"
    )]
    NoTarget,
    /// The source and the destination are link-local addresses of different links.
    #[error("the source and the destination are link-local addresses of different links")]
    OtherLink,
    /// RDMA reaches none of the addresses of a list, the first one for this reason.
    #[error("RDMA does not reach the address: {0}")]
    Unreachable(addrinfo::Unreachable),
    /// The name has no address of the source's address family.
    #[error("no address of the source's family")]
    NoAddress,
    /// There is no such interface or device, or it has no address of the address family.
    #[error("no address of this family on {0}")]
    NoSourceAddress(String),
    /// The queue pair could not be created: what its factory returned, unless that was the
    /// refusal of the kernel ([`Refused`](Self::Refused)) or of the device
    /// ([`Device`](Self::Device)).
    #[error("no queue pair: {0}")]
    QueuePair(io::Error),
    /// The listener or the connection was stopped.
    #[error("stopped")]
    Stopped,
    /// siw has closed the TCP socket that listened on this address through this device: a
    /// TCP peer disconnected too early. Listen on another port; see
    /// [`Listener`](crate::Listener#siw) for what happens when the process ends.
    #[error(
        "the kernel (siw) has closed the TCP socket that listened on {address} via {device}, as \
         it does when a TCP peer disconnects too early: listen on another port, and keep this \
         process: the kernel may crash when it ends"
    )]
    ListenerSocketClosed {
        /// The address, which may be a wildcard.
        address: core::CmAddr,
        /// The device's name.
        device: String,
    },
    /// The connection is closed.
    #[error("the connection is closed: {0}")]
    Closed(CloseReason),
    /// A request failed, which closes the connection. If it may have failed because the peer
    /// was disconnecting, a connection that carries messages has waited a second for the event
    /// that says so; if the event comes, [`Closed`](Self::Closed) holds both.
    #[error("{0}")]
    Request(FailedRequest),
    /// The device refused, or its context is closed.
    #[error("{error}")]
    Device {
        /// A `rdmacm::verbs::Error` ([`io::Error::get_ref`]), of kind
        /// [`NotConnected`](io::ErrorKind::NotConnected) if the context is closed, for example
        /// because the device was removed.
        error: io::Error,
        /// The error number, if there is one.
        errno: Option<i32>,
    },
    /// The message has this many bytes, which is more than
    /// `MessageOptions::size` allows.
    #[error("a message of {0} bytes is longer than MessageOptions::size")]
    MessageTooLong(usize),
    /// A datagram is longer than the path's MTU. Nothing was sent.
    #[error("a datagram of {bytes} bytes is longer than the maximum of {max} bytes")]
    DatagramTooLong {
        /// Bytes of the datagram.
        bytes: usize,
        /// Bytes of the longest.
        max: usize,
    },
    /// The UDP socket of a datagram socket was refused, or could not send.
    #[error("UDP: {0}")]
    Udp(io::Error),
    /// A datagram socket cannot send to this address.
    #[error(
        "this socket cannot send to the address: wildcard, broadcast, multicast, of port 0, of \
         another family or scope, or not the peer that the socket is connected to"
    )]
    NotAPeerAddress,
    /// A datagram socket is closed: its device was removed, or the bond that has its address has
    /// failed over to an interface with another link-layer address.
    #[error("the socket is closed: {0}")]
    SocketClosed(EventKind),
    /// The queue pair of a datagram socket has failed, which closes the socket.
    #[error("the queue pair is in the error state")]
    QueuePairFailed,
    /// A multicast group was lost. The socket stays open without it.
    #[error("the group {group} is lost: {failure}")]
    GroupLost {
        /// The group.
        group: core::CmAddr,
        /// What the kernel reports.
        failure: EventFailure,
    },
    /// The peer is no rsocket, or uses another version of the protocol.
    #[cfg(feature = "verbs")]
    #[error(transparent)]
    Handshake(rdmacm_rsocket::HandshakeError),
    /// The peer of a stream did what the rsocket protocol does not allow, which closes the
    /// connection.
    #[cfg(feature = "verbs")]
    #[error(transparent)]
    Protocol(rdmacm_rsocket::ProtocolError),
    /// This side has aborted the stream.
    #[error("the stream was aborted")]
    Aborted,
    /// Nothing more can be written to the stream: this side has shut down writing, or the peer has
    /// closed the stream. From a close: the peer closed it before its device had acknowledged all
    /// that was written.
    #[error("the stream is closed for writing, by this side or by the peer")]
    ShutDown,
    /// The peer's device has not acknowledged this many bytes of a stream in time.
    #[error("{0} bytes were not acknowledged")]
    NotAcknowledged(u64),
    /// The peer of a stream has mapped no memory at this offset.
    #[error("the peer has mapped no memory there")]
    NotMapped,
    /// The peer of a stream has room for no further mapped region.
    #[error("the peer has no room for another mapped region")]
    NoMapEntry,
    /// A region to map has 4 GiB or more, or ends beyond the last offset.
    #[error("memory of 4 GiB, or beyond the last offset, cannot be mapped")]
    NotMappable,
    /// The text is not an address with a port. Only connecting looks names up.
    #[error("not an address with a port; names are not looked up here")]
    InvalidAddress,
    /// A listener cannot listen on a loopback address: no RDMA device has one. The kernel would take
    /// it for the wildcard address: on RoCE and InfiniBand any host could connect, on iWARP none.
    #[error("no RDMA device has a loopback address")]
    LoopbackAddress,
}

impl Cause {
    /// The deadline of a lookup is the caller's.
    pub(crate) fn name(error: addrinfo::Error) -> Self {
        match error {
            addrinfo::Error::LookupDeadline => Self::Deadline,
            error => Self::Name(error),
        }
    }

    /// Why a queue pair was not created.
    pub(crate) fn queue_pair(error: io::Error) -> Self {
        match error.downcast::<core::Error>() {
            Ok(refused) => refused.into(),
            #[cfg(feature = "verbs")]
            Err(error) => Self::verbs_queue_pair(error),
            #[cfg(not(feature = "verbs"))]
            Err(error) => Self::QueuePair(error),
        }
    }

    /// As [`queue_pair`](Self::queue_pair): what the device has refused, or else the error.
    #[cfg(feature = "verbs")]
    fn verbs_queue_pair(error: io::Error) -> Self {
        match error.downcast::<rdmacm_verbs::Error>() {
            Ok(refused) if refused.raw_os_error().is_some() || refused.is_context_closed() => {
                Self::device(refused)
            }
            Ok(invalid) => Self::QueuePair(invalid.into()),
            Err(error) => Self::QueuePair(error),
        }
    }

    /// A refusal of the verbs layer.
    #[cfg(feature = "verbs")]
    pub(crate) fn device(error: rdmacm_verbs::Error) -> Self {
        let errno = error.raw_os_error();
        Self::Device {
            error: error.into(),
            errno,
        }
    }
}

/// A refusal without its operation, which the stage names.
struct Refusal<'a>(&'a core::Error);

impl fmt::Display for Refusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refused = match self.0 {
            core::Error::Command(refused) => refused,
            core::Error::Open { path, errno, cause } => {
                return write!(f, "{}: {}: {cause}", path.display(), ErrnoName(*errno));
            }
            error => return error.fmt(f),
        };
        write!(f, "{:?}: {}", refused.command, ErrnoName(refused.errno))?;
        match refused.cause() {
            Some(cause) => write!(f, ": {cause}"),
            None => write!(f, ": {}", io::Error::from_raw_os_error(refused.errno)),
        }
    }
}

/// Why a lookup on the blocking executor has no result.
impl From<TaskLost> for addrinfo::Error {
    fn from(lost: TaskLost) -> Self {
        match lost {
            TaskLost::Panicked => Self::LookupPanicked,
            TaskLost::Dropped => Self::LookupDropped,
        }
    }
}

impl From<core::Error> for Cause {
    fn from(error: core::Error) -> Self {
        match error {
            core::Error::DeadlinePassed => Self::Deadline,
            error => Self::Refused(error),
        }
    }
}
