//! What kinds of failure callers distinguish.

use std::io;

use rdmacm_core::{self as core, EventKind, RejectReason};

use super::{Cause, Error};

impl Error {
    /// Whether the peer refused, by whatever transport.
    #[must_use]
    pub fn is_rejected(&self) -> bool {
        match &self.0.cause {
            Cause::Event(failure) => failure.is_rejected(),
            Cause::Refused(error) => error.raw_os_error() == Some(libc::ECONNREFUSED),
            _ => false,
        }
    }

    /// Whether a connection that was there is over: the peer disconnected or ended, a
    /// request failed, or the device has gone.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        match &self.0.cause {
            Cause::Ended(_) => true,
            Cause::Event(failure) => failure.kind() == EventKind::Disconnected,
            #[cfg(feature = "verbs")]
            Cause::Completion(_) => true,
            #[cfg(feature = "verbs")]
            Cause::Verbs(error) => error.is_gone(),
            _ => false,
        }
    }

    /// Whether there is no way to the peer, or nobody there answers: no route, no
    /// neighbour, no answer to the connect request. If the kernel found out by waiting,
    /// [`is_timeout`](Self::is_timeout) is true as well.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        match &self.0.cause {
            Cause::Event(failure) => failure.is_unreachable(),
            Cause::Refused(error) => error.is_unreachable(),
            _ => false,
        }
    }

    /// Whether the deadline passed, this side's or the kernel's.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match &self.0.cause {
            Cause::Deadline => true,
            Cause::Event(failure) => failure.is_timeout(),
            Cause::Refused(error) => error.is_timeout(),
            _ => false,
        }
    }

    /// Whether the same again, a little later, may succeed: the peer has not
    /// noticed that an earlier connection ended (stale), is short of resources,
    /// did not answer in time, or is not there yet.
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
            Cause::Event(failure) => matches!(
                failure.kind(),
                EventKind::AddrError
                    | EventKind::RouteError
                    | EventKind::Unreachable
                    | EventKind::AddrChange
            ),
            Cause::Refused(error) => {
                let errno = error.raw_os_error();
                let is_short = matches!(errno, Some(libc::EADDRINUSE | libc::ENOMEM));
                self.is_rejected() || error.is_unreachable() || is_short
            }
            Cause::Gone => true,
            _ => false,
        }
    }

    /// Whether the device has gone, whoever noticed.
    fn is_device_gone(&self) -> bool {
        match &self.0.cause {
            Cause::Event(failure) => failure.kind() == EventKind::DeviceRemoval,
            Cause::Ended(ending) => ending.kind() == EventKind::DeviceRemoval,
            Cause::Refused(core::Error::Command(refused)) => refused.errno == libc::ENXIO,
            #[cfg(feature = "verbs")]
            Cause::Verbs(error) => error.is_gone(),
            _ => false,
        }
    }
}

/// One kind for one happening, whichever the transport and whoever noticed first:
///
/// | what happened | kind |
/// |---|---|
/// | nobody listens, the peer rejected | [`ConnectionRefused`](io::ErrorKind::ConnectionRefused) |
/// | nobody has the address or answers, the deadline passed | [`TimedOut`](io::ErrorKind::TimedOut) |
/// | no route leads there | [`NetworkUnreachable`](io::ErrorKind::NetworkUnreachable), [`HostUnreachable`](io::ErrorKind::HostUnreachable) |
/// | the connection ended, a request failed, the peer gave up before | [`ConnectionReset`](io::ErrorKind::ConnectionReset) |
/// | the device has gone | [`NotConnected`](io::ErrorKind::NotConnected) |
/// | the caller's values cannot be | [`InvalidInput`](io::ErrorKind::InvalidInput) |
///
/// All else has the kind of its error number.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::new(kind(&error), error)
    }
}

fn kind(error: &Error) -> io::ErrorKind {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, HostUnreachable, InvalidInput};
    match error.cause() {
        _ if error.is_device_gone() => io::ErrorKind::NotConnected,
        _ if error.is_rejected() => ConnectionRefused,
        _ if error.is_timeout() => io::ErrorKind::TimedOut,
        _ if error.is_ended() => ConnectionReset,
        Cause::Gone => ConnectionReset,
        Cause::Event(failure) => match failure.raw_os_error() {
            Some(errno @ (libc::ENETUNREACH | libc::EHOSTUNREACH)) => kind_of(errno),
            _ if failure.is_unreachable() => HostUnreachable,
            Some(errno) => kind_of(errno),
            None => io::ErrorKind::Other,
        },
        Cause::Refused(error) => io::Error::from(error.clone()).kind(),
        Cause::Name(error) => io::Error::from(error.clone()).kind(),
        Cause::QueuePair(error) => error.kind(),
        Cause::NotAnAddress | Cause::Source(_) | Cause::NoAddress => InvalidInput,
        #[cfg(feature = "verbs")]
        Cause::TooLong(_) => InvalidInput,
        #[cfg(feature = "verbs")]
        Cause::Verbs(error) => io::Error::from(error.clone()).kind(),
        _ => io::ErrorKind::Other,
    }
}

fn kind_of(errno: i32) -> io::ErrorKind {
    io::Error::from_raw_os_error(errno).kind()
}
