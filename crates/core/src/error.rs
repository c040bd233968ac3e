//! Errors.

use std::io;
use std::path::{Path, PathBuf};

use rdmacm_abi::{CommandNumber, QpState};

use crate::errno::Name;
use crate::operation::Operation;

mod cause;
mod command;
mod queue_pair;

pub use command::{CommandError, LikelyCause};
pub use queue_pair::QueuePairError;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of this crate. Errors with equal contents are equal, so tests can compare
/// whole results.
///
/// The text includes the source: [`source`](std::error::Error::source) returns `None`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The connection manager's device could not be opened.
    #[error("open {}: {}: {cause}", path.display(), Name(*errno))]
    Open {
        /// The device node.
        path: PathBuf,
        /// The error number of `open(2)`.
        errno: i32,
        /// The likely cause, and what to do.
        cause: &'static str,
    },
    /// The kernel refused a command.
    #[error(transparent)]
    Command(Box<CommandError>),
    /// The library refused the caller's values before the kernel saw them; nothing has
    /// changed.
    #[error("{operation}: {reason}")]
    InvalidInput {
        /// The operation that the caller requested.
        operation: Box<Operation>,
        /// What is wrong with the values.
        reason: &'static str,
    },
    /// The kernel's answer is invalid.
    #[error("{operation}: invalid response of the kernel to {command:?}: {what}")]
    Answer {
        /// The operation that the caller requested.
        operation: Box<Operation>,
        /// The kernel command.
        command: CommandNumber,
        /// What is wrong with the answer.
        what: &'static str,
    },
    /// The caller's private data is too long for the message; nothing has changed.
    #[error("{length} bytes of private data: at most {limit} fit here")]
    PrivateDataTooLong {
        /// The length, in bytes.
        length: usize,
        /// The largest length of this message, in bytes.
        limit: usize,
    },
    /// The kernel does not support a command, or the channel does not use it.
    #[error("{command:?} is not available: it needs {needs}")]
    Unsupported {
        /// The kernel command.
        command: CommandNumber,
        /// The kernels that support it, and the channels that use it.
        needs: &'static str,
    },
    /// The queue pair could not be modified.
    #[error("move the queue pair to {state:?}: {error}")]
    QueuePair {
        /// The state to move to.
        state: QpState,
        /// The error of its library.
        error: QueuePairError,
    },
    /// The owner of the id has dropped it.
    #[error("the id has been destroyed")]
    IdDestroyed,
    /// A resolution of the id is pending: the event that ends it has not been read.
    #[error("the id is resolving a name or a service, or the event that ends it has not been read")]
    Busy,
    /// The id has begun to resolve another service since.
    #[error("the id has begun to resolve another service, whose records replace those of this one")]
    Superseded,
    /// The deadline passed before an event.
    #[error("the deadline has passed")]
    DeadlinePassed,
    /// A [`Waker`](crate::Waker) ended the wait.
    #[error("woken by a waker")]
    Woken,
    /// Waiting failed, or the descriptors to wait on could not be opened.
    #[error("wait for events: {}: {}", Name(*errno), io::Error::from_raw_os_error(*errno))]
    Wait {
        /// The error number of `poll(2)`, `eventfd(2)` or `epoll_create1(2)`; `ECANCELED` if the
        /// asynchronous runtime that waits for the crate `rdmacm` has shut down.
        errno: i32,
    },
    /// The RDMA devices could not be listed.
    #[error("query netlink and sysfs for RDMA devices: {}: {}", Name(*errno), io::Error::from_raw_os_error(*errno))]
    Devices {
        /// The error number of the netlink request, or of reading sysfs.
        errno: i32,
    },
}

impl Error {
    pub(crate) fn open(node: &Path, error: &io::Error) -> Self {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        Self::Open {
            path: node.to_owned(),
            errno,
            cause: cause::open_cause(errno),
        }
    }

    pub(crate) fn wait(error: &io::Error) -> Self {
        Self::Wait {
            errno: error.raw_os_error().unwrap_or(libc::EIO),
        }
    }

    #[cold]
    pub(crate) fn invalid(operation: Operation, reason: &'static str) -> Self {
        Self::InvalidInput {
            operation: Box::new(operation),
            reason,
        }
    }

    pub(crate) fn private_data(length: usize, limit: usize) -> Self {
        Self::PrivateDataTooLong { length, limit }
    }

    pub(crate) fn unsupported(command: CommandNumber) -> Self {
        let needs = match command {
            CommandNumber::RESOLVE_IB_SERVICE | CommandNumber::WRITE_CM_EVENT => {
                "Linux 6.18 or newer"
            }
            _ => "Linux 3.12 or newer, and a channel without AddressAbi::IpOnly",
        };
        Self::Unsupported { command, needs }
    }

    pub(crate) fn queue_pair(state: QpState, error: io::Error) -> Self {
        let error = error.into();
        Self::QueuePair { state, error }
    }

    pub(crate) fn answer(operation: Operation, command: CommandNumber, what: &'static str) -> Self {
        Self::Answer {
            operation: Box::new(operation),
            command,
            what,
        }
    }

    #[cold]
    pub(crate) fn command(operation: Operation, command: CommandNumber, error: &io::Error) -> Self {
        match <CommandError>::errno_of(error) {
            Ok(errno) => Self::Command(Box::new(CommandError::new(operation, command, errno))),
            Err(what) => Self::answer(operation, command, what),
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "it is passed to map_err")]
    pub(crate) fn devices(error: io::Error) -> Self {
        Self::Devices {
            errno: error.raw_os_error().unwrap_or(libc::EPROTO),
        }
    }

    /// Whether the library refused the caller's values.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::InvalidInput { .. } | Self::PrivateDataTooLong { .. }
        )
    }

    /// The error number of the kernel or of the queue pair's library, if the error has
    /// one.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Open { errno, .. } | Self::Wait { errno } | Self::Devices { errno } => {
                Some(*errno)
            }
            Self::QueuePair { error, .. } => error.raw_os_error(),
            Self::Command(error) => Some(error.errno),
            _ => None,
        }
    }

    /// Whether the caller's deadline passed, or TCP's timeout on iWARP.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::DeadlinePassed) || self.raw_os_error() == Some(libc::ETIMEDOUT)
    }

    /// Whether there is no route to the peer, or it does not answer.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Command(error) if is_unreachable(error.errno))
    }
}

/// Whether an error number means that there is no route to the peer, or that it does not
/// answer.
pub(crate) fn is_unreachable(errno: i32) -> bool {
    matches!(
        errno,
        libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ETIMEDOUT
    )
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match (&error, error.raw_os_error()) {
            (_, Some(errno)) => io::Error::from_raw_os_error(errno).kind(),
            (Error::QueuePair { error, .. }, _) => error.as_io_error().kind(),
            (Error::InvalidInput { .. } | Error::PrivateDataTooLong { .. }, _) => {
                io::ErrorKind::InvalidInput
            }
            (Error::Unsupported { .. }, _) => io::ErrorKind::Unsupported,
            (Error::Answer { .. }, _) => io::ErrorKind::InvalidData,
            (Error::Busy, _) => io::ErrorKind::ResourceBusy,
            (Error::IdDestroyed, _) => io::ErrorKind::NotFound,
            (Error::DeadlinePassed, _) => io::ErrorKind::TimedOut,
            (Error::Woken, _) => io::ErrorKind::Interrupted,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::CmAddr;

    fn refused(errno: i32) -> Error {
        Error::command(
            Operation::Bind(CmAddr::from(([10, 0, 0, 9], 7))),
            CommandNumber::BIND,
            &io::Error::from_raw_os_error(errno),
        )
    }

    #[test]
    fn an_error_names_operation_command_errno_and_cause() {
        assert_eq!(
            refused(libc::EADDRNOTAVAIL).to_string(),
            "bind 10.0.0.9:7 (BIND): EADDRNOTAVAIL: no network interface here has this \
             address, or another id shares its port and one of the two has a wildcard address"
        );
    }

    #[test]
    fn an_errno_without_a_known_cause_gets_the_systems_words() {
        assert!(refused(libc::ENOMEM).to_string().contains("ENOMEM: Cannot"));
    }

    #[test]
    fn the_text_of_an_error_is_complete_and_has_no_source() {
        let operation = || Box::new(Operation::Listen);
        let command = CommandNumber::LISTEN;
        let said_no = || io::Error::other("the firmware said no");
        let errno = libc::EIO;
        let errors = [
            Error::open(
                Path::new("/dev/there"),
                &io::Error::from_raw_os_error(errno),
            ),
            refused(libc::EADDRINUSE),
            refused(libc::ENOMEM),
            Error::invalid(Operation::Listen, "a reason"),
            Error::Answer {
                operation: operation(),
                command,
                what: "a reason",
            },
            Error::private_data(300, 56),
            Error::unsupported(command),
            Error::queue_pair(QpState::RTR, said_no()),
            Error::queue_pair(QpState::RTR, io::Error::from_raw_os_error(errno)),
            Error::IdDestroyed,
            Error::Busy,
            Error::Superseded,
            Error::DeadlinePassed,
            Error::Woken,
            Error::Wait { errno },
            Error::Devices { errno },
        ];
        for error in errors {
            assert!(std::error::Error::source(&error).is_none(), "{error:?}");
            let words = error.to_string();
            let wrapped = io::Error::from(error);
            assert_eq!(wrapped.to_string(), words);
            assert!(std::error::Error::source(&wrapped).is_none(), "{words}");
        }
    }

    #[test]
    fn what_a_queue_pairs_library_answers_is_kept() {
        let error = Error::queue_pair(QpState::RTR, io::Error::other("the firmware said no"));
        assert_eq!(
            error.to_string(),
            "move the queue pair to RTR: the firmware said no"
        );
        assert_eq!(error.raw_os_error(), None);
        assert_eq!(error, error.clone());
        let other = Error::queue_pair(QpState::RTR, io::Error::other("no, again"));
        assert_ne!(error, other);
        let kind = io::ErrorKind::PermissionDenied;
        let denied = Error::queue_pair(QpState::RTR, io::Error::new(kind, "not today"));
        assert_eq!(io::Error::from(denied).kind(), kind);
        let number = Error::queue_pair(QpState::RTR, io::Error::from_raw_os_error(libc::ENOBUFS));
        assert_eq!(number.raw_os_error(), Some(libc::ENOBUFS));
        assert!(number.to_string().contains("ENOBUFS: No buffer"));
    }

    #[test]
    fn timeouts_and_unreachable_peers_are_distinguished() {
        assert!(Error::DeadlinePassed.is_timeout() && !Error::DeadlinePassed.is_unreachable());
        for errno in [libc::ENETUNREACH, libc::EHOSTUNREACH] {
            assert!(refused(errno).is_unreachable() && !refused(errno).is_timeout());
        }
        let silent = refused(libc::ETIMEDOUT);
        assert!(silent.is_unreachable() && silent.is_timeout());
        assert!(!refused(libc::EINVAL).is_unreachable());
    }

    #[test]
    fn a_command_without_an_error_number_is_an_answer_that_makes_no_sense() {
        let command = |kind: io::ErrorKind| {
            let error = Error::command(Operation::Listen, CommandNumber::LISTEN, &kind.into());
            assert!(matches!(error, Error::Answer { .. }), "{error}");
            error.to_string()
        };
        assert!(command(io::ErrorKind::WriteZero).contains("only a part"));
        assert!(command(io::ErrorKind::Other).contains("without a number"));
    }

    #[test]
    fn a_node_that_does_not_open_says_why() {
        for (errno, words) in [
            (libc::ENXIO, "rdma_ucm"),
            (libc::EACCES, "no permission"),
            (libc::EPERM, "no permission"),
            (libc::EMFILE, "no file descriptor"),
            (libc::EIO, "would not open"),
        ] {
            let error = io::Error::from_raw_os_error(errno);
            let words_of_error = Error::open(Path::new("/dev/x"), &error).to_string();
            let loaded = errno == libc::ENXIO && words_of_error.contains("is loaded");
            assert!(words_of_error.contains(words) || loaded, "{words_of_error}");
        }
    }

    #[test]
    fn a_missing_command_names_the_kernel_that_has_it() {
        let needs = |command| Error::unsupported(command).to_string();
        assert!(needs(CommandNumber::RESOLVE_IB_SERVICE).ends_with("Linux 6.18 or newer"));
        assert!(needs(CommandNumber::JOIN_MCAST).ends_with("AddressAbi::IpOnly"));
    }

    #[test]
    fn each_error_has_its_io_kind() {
        use io::ErrorKind as Kind;
        let operation = Operation::Listen;
        for (error, kind) in [
            (Error::invalid(operation, "no"), Kind::InvalidInput),
            (Error::private_data(300, 56), Kind::InvalidInput),
            (Error::unsupported(CommandNumber::BIND), Kind::Unsupported),
            (
                Error::answer(operation, CommandNumber::BIND, "no"),
                Kind::InvalidData,
            ),
            (Error::Busy, Kind::ResourceBusy),
            (Error::IdDestroyed, Kind::NotFound),
            (Error::Woken, Kind::Interrupted),
            (
                Error::Wait {
                    errno: libc::EACCES,
                },
                Kind::PermissionDenied,
            ),
        ] {
            assert_eq!(io::Error::from(error.clone()).kind(), kind, "{error}");
        }
    }

    #[test]
    fn an_io_error_keeps_kind_and_source() {
        let error = io::Error::from(refused(libc::EADDRINUSE));
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(error.to_string().starts_with("bind 10.0.0.9:7"));
        let timed_out = io::Error::from(Error::DeadlinePassed);
        assert_eq!(timed_out.kind(), io::ErrorKind::TimedOut);
    }
}
