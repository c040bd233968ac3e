//! Why there is no connection.

use std::fmt;
use std::io;
use std::time::Duration;

use rdmacm_addrinfo as addrinfo;
use rdmacm_core::{self as core, ErrnoName, EventFailure, EventKind, RejectReason};

use crate::ending::Ending;
use crate::step::Step;

mod target;

pub(crate) use target::Target;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why there is no connection: what was under way, with whom, through which
/// device, for how long, what went wrong, and what the peer said.
///
/// ```text
/// connect to 10.1.0.7:7471 via rxe0: REJECTED 8: no listener, after 2 ms
/// ```
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

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The kernel, or this library before it, refused.
    #[error("{}", Refusal(.0))]
    Refused(#[source] core::Error),
    /// The kernel reported a failure.
    #[error(transparent)]
    Event(EventFailure),
    /// The connection ended before it was there.
    #[error("the peer has gone")]
    Gone,
    /// The deadline passed first; nothing of the attempt is left.
    #[error("the deadline passed")]
    Deadline,
    /// The deadline passed while so many of TCP's handshakes were under way, as many as
    ///  [`NodeOptions::handshakes`](crate::NodeOptions::handshakes) lets be.
    /// Those of peers that are not there end with TCP's patience.
    #[error("{0} TCP handshakes of this node were under way until the deadline")]
    Handshakes(usize),
    /// The name has no answer.
    #[error(transparent)]
    Name(addrinfo::Error),
    /// The name has no address of a family the source has.
    #[error("no address of the source's family")]
    NoAddress,
    /// No such interface or device, or it has no address of the family.
    #[error("no address of this family on {0}")]
    Source(String),
    /// The queue pair could not be made.
    #[error("no queue pair: {0}")]
    QueuePair(io::Error),
    /// The listener was stopped.
    #[error("the listener was stopped")]
    Stopped,
    /// The connection has ended: how.
    #[error("the connection ended: {0}")]
    Ended(Ending),
    /// A request failed, which ended the connection.
    #[cfg(feature = "verbs")]
    #[error(transparent)]
    Completion(rdmacm_verbs::CompletionError),
    /// The device refused, or has gone ([`Error::is_gone`](rdmacm_verbs::Error::is_gone)).
    #[cfg(feature = "verbs")]
    #[error(transparent)]
    Verbs(#[from] rdmacm_verbs::Error),
    /// The message has so many bytes, more than this side copies; the limit is
    /// [`MessageOptions::size`](crate::MessageOptions::size).
    #[cfg(feature = "verbs")]
    #[error("{0} bytes are more than the connection's messages have")]
    TooLong(usize),
    /// The text is no address.
    #[error("not an address with a port")]
    NotAnAddress,
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
        self.0.private_data = data.to_vec();
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

    /// Whether the peer refused, by whatever transport.
    #[must_use]
    pub fn is_rejected(&self) -> bool {
        self.failure()
            .is_some_and(|failure| failure.kind() == EventKind::Rejected)
            || self.raw_os_error() == Some(libc::ECONNREFUSED)
    }

    /// What the peer said with its refusal; empty where it said nothing. On
    /// InfiniBand and RoCE it is padded with zeros to 148 bytes; siw loses it where the
    /// network delivers TCP's end first (`siw_cm_llp_data_ready`).
    #[must_use]
    pub fn private_data(&self) -> &[u8] {
        &self.0.private_data
    }

    /// Whether the deadline passed, this side's or the kernel's.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self.0.cause, Cause::Deadline | Cause::Handshakes(_))
            || self.raw_os_error() == Some(libc::ETIMEDOUT)
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
            Cause::Refused(error) => matches!(
                error.raw_os_error(),
                Some(
                    libc::ECONNREFUSED
                        | libc::ETIMEDOUT
                        | libc::EHOSTUNREACH
                        | libc::ENETUNREACH
                        | libc::EADDRINUSE
                        | libc::ENOMEM
                )
            ),
            Cause::Gone => true,
            _ => false,
        }
    }

    /// The error number, where there is one.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        match &self.0.cause {
            Cause::Refused(error) => error.raw_os_error(),
            Cause::Event(failure) => failure.raw_os_error(),
            Cause::QueuePair(error) => error.raw_os_error(),
            Cause::Ended(ending) => ending.failure()?.raw_os_error(),
            #[cfg(feature = "verbs")]
            Cause::Verbs(error) => error.raw_os_error(),
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
        write!(f, "{step} {target}: {cause}, after {elapsed:.1?}")?;
        if *attempts > 1 {
            write!(f, " and {attempts} attempts")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0.cause)
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match (error.raw_os_error(), error.cause()) {
            (Some(errno), _) => Self::from_raw_os_error(errno).kind(),
            (None, Cause::Deadline | Cause::Handshakes(_)) => io::ErrorKind::TimedOut,
            (None, _) if error.is_rejected() => io::ErrorKind::ConnectionRefused,
            (None, Cause::NotAnAddress | Cause::Source(_) | Cause::NoAddress) => {
                io::ErrorKind::InvalidInput
            }
            (None, Cause::Gone | Cause::Ended(_)) => io::ErrorKind::ConnectionReset,
            #[cfg(feature = "verbs")]
            (None, Cause::Completion(_)) => io::ErrorKind::ConnectionAborted,
            #[cfg(feature = "verbs")]
            (None, Cause::Verbs(error)) => io::Error::from(error.clone()).kind(),
            #[cfg(feature = "verbs")]
            (None, Cause::TooLong(_)) => io::ErrorKind::InvalidInput,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

impl Cause {
    /// A lookup's deadline is the caller's.
    pub(crate) fn name(error: addrinfo::Error) -> Self {
        match error {
            addrinfo::Error::LookupDeadline => Self::Deadline,
            error => Self::Name(error),
        }
    }
}

/// A refusal, without naming the operation, which the step does.
struct Refusal<'a>(&'a core::Error);

impl fmt::Display for Refusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core::Error::Command(refused) = self.0 else {
            return self.0.fmt(f);
        };
        write!(f, "{:?}: {}", refused.command, ErrnoName(refused.errno))?;
        match refused.cause() {
            Some(cause) => write!(f, ": {cause}"),
            None => write!(f, ": {}", io::Error::from_raw_os_error(refused.errno)),
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
