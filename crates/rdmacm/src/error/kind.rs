//! The kinds of failure that callers distinguish.

use std::io;

use rdmacm_addrinfo::{self as addrinfo, NameError, Reason};
use rdmacm_core::{self as core, CmAddr, EventKind, Operation, RejectReason, SidrStatus};

use super::{Cause, Error};
use crate::stage::Stage;

impl Error {
    /// Whether the peer rejected the connection, on any transport.
    #[must_use]
    pub fn is_rejected(&self) -> bool {
        match &self.0.cause {
            Cause::Event(failure) => failure.is_rejected(),
            Cause::Refused(error) => error.raw_os_error() == Some(libc::ECONNREFUSED),
            _ => false,
        }
    }

    /// Whether a peer has answered, but not accepted.
    pub(crate) fn is_answer(&self) -> bool {
        #[cfg(feature = "verbs")]
        if let Cause::Handshake(_) = self.0.cause {
            return true;
        }
        self.is_rejected()
    }

    /// Whether an established connection, or a datagram socket, is closed: the peer
    /// disconnected or broke the protocol, a request failed, the device was removed or its context
    /// closed, or the bond that has the socket's address has failed over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match &self.0.cause {
            Cause::Closed(_) | Cause::Request(_) => true,
            Cause::SocketClosed(_) | Cause::QueuePairFailed => true,
            #[cfg(feature = "verbs")]
            Cause::Protocol(_) => true,
            Cause::Event(failure) => failure.kind() == EventKind::Disconnected,
            Cause::Device { error, .. } => is_context_closed(error),
            _ => false,
        }
    }

    /// Whether the peer cannot be reached or does not answer: no route, no RDMA device that
    /// serves it, no neighbour, no reply to the connect request. If the kernel's timeout passed,
    /// [`is_timeout`](Self::is_timeout) is true as well; if the caller's deadline passed before,
    /// only that is.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        match &self.0.cause {
            Cause::Event(failure) => failure.is_unreachable(),
            Cause::Refused(error) => error.is_unreachable(),
            Cause::Unreachable(why) => match &why.reason {
                Reason::Failed(failure) => failure.is_unreachable(),
                Reason::Refused(error) => error.is_unreachable(),
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether a deadline passed, the caller's or the kernel's.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match &self.0.cause {
            Cause::Deadline
            | Cause::TooManyHandshakes(_)
            | Cause::Name(addrinfo::Error::TooManyLookups)
            | Cause::NotAcknowledged(_) => true,
            Cause::Event(failure) => failure.is_timeout(),
            Cause::Refused(error) => error.is_timeout(),
            Cause::Unreachable(why) => match &why.reason {
                Reason::Deadline => true,
                Reason::Failed(failure) => failure.is_timeout(),
                Reason::Refused(error) => error.is_timeout(),
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether a listener or a connection was [stopped](crate::StopHandle).
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(self.0.cause, Cause::Stopped)
    }

    /// Whether a listener cannot receive connect requests any more, so that waiting for the
    /// next one is of no use: it was stopped, its device was removed, siw has closed the
    /// socket of its address, a thread that waits on the node has other credentials than the
    /// one that opened it, or the runtime that watches the node was shut down. A listener on a
    /// wildcard address reports each closed socket once ([`Cause::ListenerSocketClosed`]) and waits
    /// for other devices, even if none is left. Other errors of
    /// [`Listener::accept`](crate::Listener::accept) concern a single wait.
    #[must_use]
    pub fn ends_listener(&self) -> bool {
        match &self.0.cause {
            // It concerns a peer of the listener, or a connection.
            _ if self.stage() != Stage::WaitForRequest => false,
            Cause::Stopped | Cause::Event(_) => true,
            // A wildcard address listens on other devices as well.
            Cause::ListenerSocketClosed { address, .. } => !address.is_unspecified(),
            // Of other credentials, and of a runtime that was shut down: each wait ends at once.
            Cause::Refused(error) => {
                matches!(error.raw_os_error(), Some(libc::EACCES | libc::ECANCELED))
            }
            _ => false,
        }
    }

    /// Whether the same call may succeed a little later: the peer has not noticed that an
    /// earlier connection was closed (stale), is short of resources, did not answer until the
    /// kernel gave up, or does not listen yet; there is no route, neighbour or RDMA device on the
    /// way for now; the source port is taken; this side's network interface failed over meanwhile;
    /// or the name server failed temporarily, or there were too many lookups or threads.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        if let Some(reason) = self.reject_reason() {
            return matches!(
                reason,
                RejectReason::STALE_CONN
                    | RejectReason::NO_RESOURCES
                    | RejectReason::NO_QP
                    | RejectReason::TIMEOUT
                    | RejectReason::INVALID_SERVICE_ID
            );
        }
        match &self.0.cause {
            Cause::Event(failure) => match (failure.kind(), failure.status()) {
                // What the peer's datagram service has replied.
                (EventKind::Unreachable, status @ 1..) => matches!(
                    SidrStatus::from_status(status),
                    Some(SidrStatus::UNSUPPORTED | SidrStatus::NO_QP)
                ),
                (kind, _) => matches!(
                    kind,
                    EventKind::AddrError
                        | EventKind::RouteError
                        | EventKind::Unreachable
                        | EventKind::AddrChange
                ),
            },
            Cause::Refused(error) => {
                let is_short = error.raw_os_error() == Some(libc::ENOMEM);
                let is_unreachable = error.is_unreachable();
                self.is_rejected() || is_unreachable || is_short || self.is_port_taken()
            }
            Cause::Name(error) => is_retryable_lookup(error),
            Cause::PeerGone => true,
            _ => false,
        }
    }

    /// Whether another id, or TCP on iWARP, uses the port of this side. It may be free later, and
    /// an id that the kernel chooses a port for may get another one.
    pub(crate) fn is_port_taken(&self) -> bool {
        let Cause::Refused(core::Error::Command(refused)) = &self.0.cause else {
            return false;
        };
        match refused.errno {
            libc::EADDRINUSE => true,
            libc::EADDRNOTAVAIL => is_port_not_available(&refused.operation),
            _ => false,
        }
    }

    /// Whether the device was removed, or its context closed.
    fn is_context_closed(&self) -> bool {
        match &self.0.cause {
            Cause::Event(failure) => failure.kind() == EventKind::DeviceRemoval,
            Cause::Closed(reason) => reason.kind() == EventKind::DeviceRemoval,
            Cause::Refused(core::Error::Command(refused)) => refused.errno == libc::ENXIO,
            Cause::Device { error, .. } => is_context_closed(error),
            _ => false,
        }
    }
}

/// Whether `EADDRNOTAVAIL` is about the port: the kernel returns it for a port that is taken if the
/// address of either id is a wildcard (`cma_check_port`), and TCP for a port whose former connection
/// has just ended. For any other address it may as well not be this host's.
fn is_port_not_available(operation: &Operation) -> bool {
    let has_port = |address: &CmAddr| address.is_unspecified() && address.port() != 0;
    match operation {
        Operation::Listen | Operation::Connect => true,
        Operation::Bind(address) => has_port(address),
        Operation::ResolveAddr { source, .. } => source.as_ref().is_some_and(has_port),
        _ => false,
    }
}

/// One kind for each condition, on every transport:
///
/// | condition | kind |
/// |---|---|
/// | no listener, or the peer rejected | [`ConnectionRefused`](io::ErrorKind::ConnectionRefused) |
/// | no answer, or a deadline passed | [`TimedOut`](io::ErrorKind::TimedOut) |
/// | no route | [`NetworkUnreachable`](io::ErrorKind::NetworkUnreachable), [`HostUnreachable`](io::ErrorKind::HostUnreachable) |
/// | the connection is closed, a request or the queue pair failed, the peer gave up or broke the protocol, the interface failed over meanwhile | [`ConnectionReset`](io::ErrorKind::ConnectionReset) |
/// | the device was removed or its context closed, or the bond that has the address of a datagram socket has failed over | [`NotConnected`](io::ErrorKind::NotConnected) |
/// | a stream is closed for writing, by this side or by the peer | [`BrokenPipe`](io::ErrorKind::BrokenPipe) |
/// | this side has aborted the stream | [`ConnectionAborted`](io::ErrorKind::ConnectionAborted) |
/// | the peer is no rsocket | [`Unsupported`](io::ErrorKind::Unsupported) |
/// | a listener or a connection was stopped | [`Other`](io::ErrorKind::Other) |
/// | invalid arguments | [`InvalidInput`](io::ErrorKind::InvalidInput) |
///
/// Other errors have the kind of their error number.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::new(kind(&error), error)
    }
}

fn kind(error: &Error) -> io::ErrorKind {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, HostUnreachable, InvalidInput};
    match error.cause() {
        Cause::SocketClosed(_) => io::ErrorKind::NotConnected,
        _ if error.is_context_closed() => io::ErrorKind::NotConnected,
        _ if error.is_rejected() => ConnectionRefused,
        _ if error.is_timeout() => io::ErrorKind::TimedOut,
        _ if error.is_closed() => ConnectionReset,
        Cause::PeerGone => ConnectionReset,
        Cause::Event(failure) if failure.kind() == EventKind::AddrChange => ConnectionReset,
        Cause::Event(failure) => match failure.raw_os_error() {
            Some(errno @ (libc::ENETUNREACH | libc::EHOSTUNREACH)) => kind_of(errno),
            _ if failure.is_unreachable() => HostUnreachable,
            Some(errno) => kind_of(errno),
            None => io::ErrorKind::Other,
        },
        Cause::GroupLost { failure, .. } => {
            failure.raw_os_error().map_or(io::ErrorKind::Other, kind_of)
        }
        Cause::Refused(error) => io::Error::from(error.clone()).kind(),
        Cause::Unreachable(_) if error.is_unreachable() => HostUnreachable,
        Cause::Unreachable(_) => error.raw_os_error().map_or(InvalidInput, kind_of),
        Cause::Name(error) => io::Error::from(error.clone()).kind(),
        Cause::QueuePair(error)
        | Cause::Runtime(error)
        | Cause::Udp(error)
        | Cause::Device { error, .. } => error.kind(),
        Cause::InvalidAddress
        | Cause::LoopbackAddress
        | Cause::NoSourceAddress(_)
        | Cause::NoAddress
        | Cause::NoTarget
        | Cause::OtherLink
        | Cause::NotAPeerAddress
        | Cause::NotMapped
        | Cause::NoMapEntry
        | Cause::NotMappable
        | Cause::MessageTooLong(_)
        | Cause::DatagramTooLong { .. } => InvalidInput,
        Cause::ShutDown => io::ErrorKind::BrokenPipe,
        Cause::Aborted => io::ErrorKind::ConnectionAborted,
        #[cfg(feature = "verbs")]
        Cause::Handshake(_) => io::ErrorKind::Unsupported,
        _ => io::ErrorKind::Other,
    }
}

/// Whether the name server, or this process, may be able to look a name up a little later.
fn is_retryable_lookup(error: &addrinfo::Error) -> bool {
    use addrinfo::Error::{Name, NoThread, TooManyLookups};
    matches!(
        error,
        Name(NameError::Again) | TooManyLookups | NoThread(io::ErrorKind::WouldBlock)
    )
}

/// Whether an error of the verbs layer says that the device's context is closed.
fn is_context_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotConnected
}

fn kind_of(errno: i32) -> io::ErrorKind {
    io::Error::from_raw_os_error(errno).kind()
}
