//! Why a call failed.

use std::fmt;
use std::io;
use std::time::Duration;

use rdmacm_addrinfo::Reason;
use rdmacm_core::{self as core, EventFailure, EventKind, RejectReason};

use crate::failed_request::FailedRequest;
use crate::stage::Stage;

mod cause;
mod kind;
mod target;

pub use cause::Cause;
pub(crate) use target::Target;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed: the stage, the peer, the device, the time it took, the cause, and the
/// private data of the peer's rejection.
///
/// ```text
/// connect to 10.1.0.7:7471 via rxe0: REJECTED 8: no listener, after 2.0ms
/// ```
///
/// The text is complete: it includes the [cause](Self::cause), and
/// [`source`](std::error::Error::source) returns `None`.
///
/// [`Error::new`] makes errors for tests of error handling.
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    stage: Stage,
    target: Target,
    elapsed: Duration,
    cause: Cause,
    private_data: Vec<u8>,
    attempts: u32,
}

impl Error {
    /// An error of no peer in particular, for tests of error handling.
    ///
    /// ```
    /// use rdmacm::{Cause, Error, Stage};
    ///
    /// let error = Error::new(Stage::Connect, Cause::Deadline);
    /// assert!(error.is_timeout());
    /// assert_eq!(error.to_string(), "connect to a peer: the deadline passed, after 0.0ns");
    /// ```
    #[must_use]
    pub fn new(stage: Stage, cause: Cause) -> Self {
        Self::with_target(stage, Target::default(), Duration::ZERO, cause)
    }

    pub(crate) fn with_target(
        stage: Stage,
        target: Target,
        elapsed: Duration,
        cause: Cause,
    ) -> Self {
        Self(Box::new(Inner {
            stage,
            target,
            elapsed,
            cause,
            private_data: Vec::new(),
            attempts: 1,
        }))
    }

    pub(crate) fn with_private_data(mut self, data: &[u8]) -> Self {
        let is_padded = self.failure().is_some_and(is_padded);
        if !is_padded || data.iter().any(|byte| *byte != 0) {
            self.0.private_data = data.to_vec();
        }
        self
    }

    pub(crate) fn after(mut self, attempts: u32, elapsed: Duration) -> Self {
        self.0.attempts = attempts;
        self.0.elapsed = elapsed;
        self
    }

    /// The error of this crate in an [`io::Error`], as byte streams and their listeners return it.
    ///
    /// ```
    /// use std::io;
    /// use rdmacm::{Cause, Error, Stage};
    ///
    /// let error = io::Error::from(Error::new(Stage::WaitForRequest, Cause::Stopped));
    /// assert!(Error::from_io(&error).is_some_and(Error::ends_listener));
    /// ```
    #[must_use]
    pub fn from_io(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// What failed.
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.0.stage
    }

    /// The address that the stage is about, as far as it is known: the peer's; for
    /// [`Listen`](Stage::Listen), [`WaitForRequest`](Stage::WaitForRequest) and a datagram socket that
    /// is being bound that of this side, for [`JoinMulticast`](Stage::JoinMulticast) and
    /// [`LeaveMulticast`](Stage::LeaveMulticast) that of the group.
    #[must_use]
    pub fn address(&self) -> Option<core::CmAddr> {
        self.0.target.address()
    }

    /// The name of the RDMA device, if it was known by then.
    #[must_use]
    pub fn device(&self) -> Option<&str> {
        self.0.target.device()
    }

    /// The time that all attempts took together.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed
    }

    /// The number of attempts.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// What went wrong.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.0.cause
    }

    /// Why an InfiniBand or RoCE peer rejected the connection.
    #[must_use]
    pub fn reject_reason(&self) -> Option<RejectReason> {
        self.failure().and_then(EventFailure::reject_reason)
    }

    /// The private data of the peer's rejection.
    ///
    /// InfiniBand and RoCE transmit 148 bytes, a datagram service 136, and not how many of them the
    /// peer has set: the data is followed by zeros, and zeros alone are returned as no data. A
    /// protocol whose data may end in zeros transmits its length, as C programs do, for which
    /// `private_data_len` is 148 as well. iWARP transmits the length. siw loses the data if
    /// the network delivers the end of the TCP stream first (`siw_cm_llp_data_ready`).
    #[must_use]
    pub fn private_data(&self) -> &[u8] {
        &self.0.private_data
    }

    /// The error number, if there is one.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        match &self.0.cause {
            Cause::Refused(error) => error.raw_os_error(),
            Cause::Event(failure) | Cause::GroupLost { failure, .. } => failure.raw_os_error(),
            Cause::QueuePair(error) | Cause::Udp(error) => error.raw_os_error(),
            Cause::Unreachable(why) => match &why.reason {
                Reason::Refused(error) => error.raw_os_error(),
                Reason::Failed(failure) => failure.raw_os_error(),
                _ => None,
            },
            Cause::Closed(reason) => reason.failure()?.raw_os_error(),
            Cause::Device { errno, .. } => *errno,
            Cause::Name(error) => error.raw_os_error(),
            _ => None,
        }
    }

    /// The request that failed, if one did: as the cause, or before the connection closed.
    #[must_use]
    pub fn failed_request(&self) -> Option<FailedRequest> {
        match self.0.cause {
            Cause::Request(request) => Some(request),
            Cause::Closed(reason) => reason.failed_request(),
            _ => None,
        }
    }

    fn failure(&self) -> Option<EventFailure> {
        match self.0.cause {
            Cause::Event(failure) => Some(failure),
            _ => None,
        }
    }
}

/// Whether the private data of a rejection has zeros behind it: on InfiniBand and RoCE.
fn is_padded(failure: EventFailure) -> bool {
    let is_service = failure.kind() == EventKind::Unreachable && failure.is_rejected();
    is_service || failure.reject_reason().is_some()
}

/// The text of [`Display`](fmt::Display), which a program prints whose `main` returns the
/// error; all fields with `{:#?}`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            self.0.fmt(f)
        } else {
            fmt::Display::fmt(self, f)
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            stage,
            target,
            elapsed,
            cause,
            attempts,
            ..
        } = &*self.0;
        match stage {
            // There is no peer yet, and nothing to wait for.
            Stage::Open | Stage::ListDevices | Stage::Drive => {
                return write!(f, "{stage}: {cause}");
            }
            _ => write!(f, "{stage} {target}: {cause}, after {elapsed:.1?}")?,
        }
        if *attempts > 1 {
            write!(f, " and {attempts} attempts")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use rdmacm_addrinfo as addrinfo;

    use super::*;
    use crate::close_reason::CloseReason;

    fn failed(cause: Cause) -> Error {
        let address = core::CmAddr::from(([10, 1, 0, 7], 7471));
        Error::with_target(Stage::Connect, address.into(), Duration::ZERO, cause)
    }

    #[test]
    fn the_text_is_complete_and_has_no_source() {
        let causes = [
            Cause::Refused(core::Error::Busy),
            Cause::PeerGone,
            Cause::Deadline,
            Cause::Name(addrinfo::Error::Rdma(core::Error::Busy)),
            Cause::NoTarget,
            Cause::OtherLink,
            Cause::NoAddress,
            Cause::NoSourceAddress("eth7".to_owned()),
            Cause::QueuePair(io::Error::other("none left")),
            Cause::Stopped,
            Cause::ListenerSocketClosed {
                address: ([10, 1, 0, 7], 7471).into(),
                device: "siw0".to_owned(),
            },
            Cause::Device {
                error: io::Error::from_raw_os_error(libc::EINVAL),
                errno: Some(libc::EINVAL),
            },
            Cause::MessageTooLong(5000),
            Cause::InvalidAddress,
        ];
        for cause in causes {
            assert!(cause.source().is_none(), "{cause:?}");
            let text = cause.to_string();
            let error = failed(cause);
            assert!(error.source().is_none(), "{error:?}");
            let words = error.to_string();
            assert_eq!(
                words,
                format!("connect to 10.1.0.7:7471: {text}, after 0.0ns")
            );
            let wrapped = io::Error::from(error);
            assert_eq!(wrapped.to_string(), words);
            assert!(wrapped.source().is_none(), "{words}");
        }
    }

    #[test]
    fn an_error_is_found_in_that_of_a_stream() {
        let error = io::Error::from(failed(Cause::PeerGone));
        let found = Error::from_io(&error).map(Error::cause);
        assert!(matches!(found, Some(Cause::PeerGone)), "{error}");
        for other in [io::ErrorKind::WouldBlock.into(), io::Error::other("else")] {
            assert!(Error::from_io(&other).is_none(), "{other}");
        }
    }

    #[test]
    fn a_node_that_cannot_be_opened_is_named_once() {
        let cause = Cause::Refused(core::Error::Open {
            path: "/dev/infiniband/rdma_cm".into(),
            errno: libc::EACCES,
            cause: "no permission",
        });
        let error = Error::new(Stage::Open, cause);
        assert_eq!(
            error.to_string(),
            "open the connection manager: /dev/infiniband/rdma_cm: EACCES: no permission"
        );
        assert_eq!(
            io::Error::from(error).kind(),
            io::ErrorKind::PermissionDenied
        );
    }

    #[test]
    fn a_lookup_that_failed_for_now_is_retryable() {
        use addrinfo::{Error as Lookup, NameError};
        for (lookup, retryable) in [
            (NameError::Again.into(), true),
            (Lookup::TooManyLookups, true),
            (Lookup::NoThread(io::ErrorKind::WouldBlock), true),
            (Lookup::NoThread(io::ErrorKind::Other), false),
            (NameError::NoName.into(), false),
            (Lookup::LookupPanicked, false),
        ] {
            let error = failed(Cause::Name(lookup));
            assert_eq!(error.is_retryable(), retryable, "{error}");
        }
    }

    #[test]
    fn a_socket_or_a_connection_is_closed() {
        let kind = EventKind::DeviceRemoval;
        assert!(failed(Cause::SocketClosed(kind)).is_closed());
        assert!(failed(Cause::QueuePairFailed).is_closed());
        assert!(failed(Cause::Closed(CloseReason::new(kind, None))).is_closed());
        assert!(!failed(Cause::Stopped).is_closed());
    }

    #[cfg(feature = "verbs")]
    #[test]
    fn a_peer_that_breaks_the_protocol_closes_the_connection() {
        let error = failed(Cause::Protocol(crate::rsocket::ProtocolError::EmptyData));
        assert!(error.is_closed(), "{error}");
        let kind = io::Error::from(error).kind();
        assert_eq!(kind, io::ErrorKind::ConnectionReset);
    }

    /// The kernel reports all bytes that it could have.
    #[test]
    fn the_zeros_behind_a_rejection_are_no_data() {
        let event = |kind, status| Cause::Event(EventFailure::new(kind, status));
        let rejected = || event(EventKind::Rejected, 28);
        let refused = || event(EventKind::Unreachable, 1);
        for (cause, zeros) in [(rejected(), 148), (refused(), 136)] {
            let error = failed(cause).with_private_data(&vec![0; zeros]);
            assert!(error.private_data().is_empty(), "{error}");
        }
        for cause in [rejected(), refused()] {
            let error = failed(cause).with_private_data(&[1, 0]);
            assert_eq!(error.private_data(), [1, 0]);
        }
        // iWARP transmits the length.
        let reset = event(EventKind::Rejected, -libc::ECONNRESET);
        assert_eq!(failed(reset).with_private_data(&[0]).private_data(), [0]);
    }

    #[test]
    fn a_cause_has_one_kind() {
        for (cause, kind) in [
            (Cause::Deadline, io::ErrorKind::TimedOut),
            (
                Cause::Refused(core::Error::DeadlinePassed),
                io::ErrorKind::TimedOut,
            ),
            (Cause::PeerGone, io::ErrorKind::ConnectionReset),
            (Cause::QueuePairFailed, io::ErrorKind::ConnectionReset),
            (Cause::LoopbackAddress, io::ErrorKind::InvalidInput),
            (Cause::NoAddress, io::ErrorKind::InvalidInput),
            (
                Cause::QueuePair(io::ErrorKind::OutOfMemory.into()),
                io::ErrorKind::OutOfMemory,
            ),
            (
                Cause::Refused(core::Error::Busy),
                io::ErrorKind::ResourceBusy,
            ),
            (
                Cause::Name(addrinfo::Error::LookupPanicked),
                io::ErrorKind::Other,
            ),
            (
                Cause::Device {
                    error: io::ErrorKind::NotConnected.into(),
                    errno: None,
                },
                io::ErrorKind::NotConnected,
            ),
            (
                Cause::SocketClosed(EventKind::AddrChange),
                io::ErrorKind::NotConnected,
            ),
            (Cause::Stopped, io::ErrorKind::Other),
        ] {
            let words = cause.to_string();
            assert_eq!(io::Error::from(failed(cause)).kind(), kind, "{words}");
        }
    }
}
