//! Why there is no connection.

use std::fmt;
use std::time::Duration;

use rdmacm_core::{self as core, EventFailure, RejectReason};
#[cfg(feature = "verbs")]
use rdmacm_verbs::CompletionError;

use crate::step::Step;

mod cause;
mod kind;
mod target;

pub use cause::Cause;
pub(crate) use target::Target;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why there is no connection: what was under way, with whom, through which
/// device, for how long, what went wrong, and what the peer said.
///
/// ```text
/// connect to 10.1.0.7:7471 via rxe0: REJECTED 8: no listener, after 2.0ms
/// ```
///
/// The text is complete: it includes the [cause](Self::cause), and
/// [`source`](std::error::Error::source) returns `None`.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    step: Step,
    target: Target,
    elapsed: Duration,
    cause: Cause,
    private_data: Vec<u8>,
    attempts: u32,
}

impl Error {
    pub(crate) fn new(step: Step, target: Target, elapsed: Duration, cause: Cause) -> Self {
        Self(Box::new(Inner {
            step,
            target,
            elapsed,
            cause,
            private_data: Vec::new(),
            attempts: 1,
        }))
    }

    pub(crate) fn with_private_data(mut self, data: &[u8]) -> Self {
        let is_padded = self.reject_reason().is_some();
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

    /// What was under way.
    #[must_use]
    pub fn step(&self) -> Step {
        self.0.step
    }

    /// With whom, as far as it was known.
    #[must_use]
    pub fn destination(&self) -> Option<core::CmAddr> {
        self.0.target.address()
    }

    /// Through which RDMA device, by name, once that was known.
    #[must_use]
    pub fn device(&self) -> Option<&str> {
        self.0.target.device()
    }

    /// How long it took, all attempts together.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed
    }

    /// How often it was tried.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// What went wrong.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.0.cause
    }

    /// Why an InfiniBand or RoCE peer rejected.
    #[must_use]
    pub fn reject_reason(&self) -> Option<RejectReason> {
        self.failure().and_then(EventFailure::reject_reason)
    }

    /// What the peer said with its refusal.
    ///
    /// InfiniBand and RoCE carry 148 bytes and not how many of them the peer set: what
    /// it said is followed by zeros, which cannot be told from zeros of its own, and 148
    /// zeros are returned as nothing. A protocol that may end in zeros sends its length,
    /// as C programs do, for which `private_data_len` is 148 as well. iWARP carries the
    /// length; siw loses the data where the network delivers TCP's end first
    /// (`siw_cm_llp_data_ready`).
    #[must_use]
    pub fn private_data(&self) -> &[u8] {
        &self.0.private_data
    }

    /// The error number, where there is one.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        match &self.0.cause {
            Cause::Refused(error) => error.raw_os_error(),
            Cause::Event(failure) => failure.raw_os_error(),
            #[cfg(feature = "verbs")]
            Cause::GroupLost { failure, .. } => failure.raw_os_error(),
            Cause::QueuePair(error) => error.raw_os_error(),
            Cause::Ended(ending) => ending.failure()?.raw_os_error(),
            #[cfg(feature = "verbs")]
            Cause::Verbs(error) => error.raw_os_error(),
            _ => None,
        }
    }

    /// The request that failed, where one did: as the cause, or before the connection
    /// ended.
    #[cfg(feature = "verbs")]
    #[must_use]
    pub fn failed_request(&self) -> Option<CompletionError> {
        match self.0.cause {
            Cause::Completion(error) => Some(error),
            Cause::Ended(ending) => ending.failed_request(),
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            step,
            target,
            elapsed,
            cause,
            attempts,
            ..
        } = &*self.0;
        match step {
            // Nobody is known yet, and nothing was waited for.
            Step::Open => return write!(f, "{step}: {cause}"),
            _ => write!(f, "{step} {target}: {cause}, after {elapsed:.1?}")?,
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
    use std::io;

    use rdmacm_addrinfo as addrinfo;

    use super::*;

    fn failed(cause: Cause) -> Error {
        let address = core::CmAddr::from(([10, 1, 0, 7], 7471));
        Error::new(Step::Connect, address.into(), Duration::ZERO, cause)
    }

    #[test]
    fn the_text_is_complete_and_has_no_source() {
        let causes = [
            Cause::Refused(core::Error::Busy),
            Cause::Gone,
            Cause::Deadline,
            Cause::Name(addrinfo::Error::Rdma(core::Error::Busy)),
            Cause::NoAddress,
            Cause::Source("eth7".to_owned()),
            Cause::QueuePair(io::Error::other("none left")),
            Cause::Stopped,
            Cause::ListenerSocketClosed {
                address: ([10, 1, 0, 7], 7471).into(),
                device: "siw0".to_owned(),
            },
            #[cfg(feature = "verbs")]
            Cause::Verbs(rdmacm_verbs::Error::Gone {
                device: "rxe0".to_owned(),
            }),
            #[cfg(feature = "verbs")]
            Cause::TooLong(5000),
            Cause::NotAnAddress,
        ];
        for cause in causes {
            assert!(cause.source().is_none(), "{cause:?}");
            let said = cause.to_string();
            let error = failed(cause);
            assert!(error.source().is_none(), "{error:?}");
            let words = error.to_string();
            assert_eq!(
                words,
                format!("connect to 10.1.0.7:7471: {said}, after 0.0ns")
            );
            let wrapped = io::Error::from(error);
            assert_eq!(wrapped.to_string(), words);
            assert!(wrapped.source().is_none(), "{words}");
        }
    }

    #[test]
    fn a_node_that_cannot_be_opened_is_named_once() {
        let cause = Cause::Refused(core::Error::Open {
            path: "/dev/infiniband/rdma_cm".into(),
            errno: libc::EACCES,
            cause: "no permission",
        });
        let error = Error::new(Step::Open, Target::default(), Duration::ZERO, cause);
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
    fn a_cause_has_one_kind() {
        for (cause, kind) in [
            (Cause::Deadline, io::ErrorKind::TimedOut),
            (
                Cause::Refused(core::Error::DeadlinePassed),
                io::ErrorKind::TimedOut,
            ),
            (Cause::Gone, io::ErrorKind::ConnectionReset),
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
                Cause::Name(addrinfo::Error::LookupDied),
                io::ErrorKind::Other,
            ),
            #[cfg(feature = "verbs")]
            (
                Cause::Verbs(rdmacm_verbs::Error::Gone {
                    device: "rxe0".to_owned(),
                }),
                io::ErrorKind::NotConnected,
            ),
        ] {
            let words = cause.to_string();
            assert_eq!(io::Error::from(failed(cause)).kind(), kind, "{words}");
        }
    }
}
