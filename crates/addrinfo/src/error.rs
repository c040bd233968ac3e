//! Errors of resolving.

use std::fmt;
use std::io;

use rdmacm_core::{EventFailure, InfinibandPort, PortSpace, QpType};

use crate::unreachable::Unreachable;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a resolution failed as a whole. Why RDMA does not reach one of several addresses
/// is an [`Unreachable`](crate::Unreachable).
///
/// The text includes that of the inner error, and
/// [`source`](std::error::Error::source) returns `None`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither a node nor a service nor an address nor a path was given.
    #[error("nothing to resolve: give a node, a service or an address in the hints")]
    NothingToResolve,
    /// The hints contradict one another.
    #[error("the hints contradict each other: {0}")]
    Hints(&'static str),
    /// The port space has no queue pairs of this type, see
    /// [`allowed_qp_types`](crate::allowed_qp_types).
    #[error("port space {port_space:?} has no queue pairs of type {qp_type:?}")]
    QpType {
        /// The port space asked for.
        port_space: PortSpace,
        /// The queue pair type asked for.
        qp_type: QpType,
    },
    /// Flags SA and DNS together.
    #[error("the flags SA (InfiniBand service) and DNS (service of a host) exclude each other")]
    SaAndDns,
    /// A node together with flag SA.
    #[error("the flag SA excludes a node: the subnet administrator resolves services only")]
    SaWithNode,
    /// No service together with flag SA.
    #[error("the flag SA needs a service to query the subnet administrator for")]
    SaWithoutService,
    /// A service that the subnet administrator cannot be asked for.
    #[error("the name of an InfiniBand service has 1 to 63 bytes, and this has {0}")]
    ServiceName(usize),
    /// This machine has no active InfiniBand port, through which to query a subnet
    /// administrator.
    #[error("no active InfiniBand port to query a subnet administrator through")]
    NoInfinibandPort,
    /// No subnet administrator of any port returned records of the service.
    #[error("no subnet administrator knows the service{}", Listed(.0))]
    NoService(Vec<Unanswered>),
    /// The query of the subnet administrator for an id failed.
    #[error("query the subnet administrator for the service: {0}")]
    Administrator(EventFailure),
    /// The name or the service contains a NUL.
    #[error("a node or service cannot contain a NUL")]
    NulInText,
    /// The name or the service is not known.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The name server did not answer before the deadline.
    #[error("the name server did not answer before the deadline")]
    LookupDeadline,
    /// 64 other lookups of this [`AddrInfoResolver`](crate::AddrInfoResolver) waited for a name
    /// server until the deadline.
    #[error("the lookup did not start before the deadline: 64 others still wait for a name server")]
    TooManyLookups,
    /// 64 resolutions with an event of this [`AddrInfoResolver`](crate::AddrInfoResolver) run
    /// already, abandoned ones included.
    #[error("64 resolutions with an event run already; an abandoned one runs until its deadline")]
    TooManyResolutions,
    /// The thread of the lookup could not start.
    #[error("start a thread for the lookup: {0}")]
    NoThread(io::ErrorKind),
    /// The lookup ended without an answer.
    #[error("the thread of the lookup panicked")]
    LookupPanicked,
    /// The executor of the lookup has dropped it instead of running it.
    #[error("the executor has dropped the lookup")]
    LookupDropped,
    /// The id has no result yet, or it was taken already.
    #[error("the id has no result of a resolution")]
    NothingResolved,
    /// Listing the network interfaces of this machine or their addresses failed.
    #[error("list the network interfaces and their addresses: {}", io::Error::from_raw_os_error(*.0))]
    Interfaces(i32),
    /// The connection manager failed.
    #[error(transparent)]
    Rdma(#[from] rdmacm_core::Error),
}

/// An InfiniBand port through which a service was not found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unanswered {
    /// The port.
    pub port: InfinibandPort,
    /// Why the query failed.
    pub why: Unreachable,
}

/// The reasons of all ports in one line.
struct Listed<'a>(&'a [Unanswered]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Unanswered { port, why }) in self.0.iter().enumerate() {
            let between = if at == 0 { ": " } else { "; " };
            write!(f, "{between}{} port {}: {why}", port.device, port.number)?;
        }
        Ok(())
    }
}

/// The error codes of `getaddrinfo(3)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The node has no addresses of the family asked for.
    #[error("the node has no address of this family")]
    #[doc(alias = "EAI_ADDRFAMILY")]
    AddressFamily,
    /// The name server failed temporarily.
    #[error("the name server failed temporarily, try again later")]
    #[doc(alias = "EAI_AGAIN")]
    Again,
    /// Invalid flags.
    #[error("the flags are invalid")]
    #[doc(alias = "EAI_BADFLAGS")]
    BadFlags,
    /// The name server failed permanently. glibc 2.36 returns this for no answer of a name
    /// server; it reports an unknown name or a temporary failure instead.
    #[error("the name server failed permanently")]
    #[doc(alias = "EAI_FAIL")]
    Fail,
    /// A family that is not supported.
    #[error("the address family is not supported")]
    #[doc(alias = "EAI_FAMILY")]
    Family,
    /// Out of memory.
    #[error("out of memory")]
    #[doc(alias = "EAI_MEMORY")]
    Memory,
    /// The node exists but has no address.
    #[error("the node exists but has no address")]
    #[doc(alias = "EAI_NODATA")]
    NoData,
    /// The node or the service is not known.
    #[error("the node or service is not known")]
    #[doc(alias = "EAI_NONAME")]
    NoName,
    /// The service is not known for this port space.
    #[error("the service is not known for this port space")]
    #[doc(alias = "EAI_SERVICE")]
    Service,
    /// A socket type that is not supported.
    #[error("the socket type is not supported")]
    #[doc(alias = "EAI_SOCKTYPE")]
    SocketType,
    /// The system failed, with this error number.
    #[error("the system failed: {}", io::Error::from_raw_os_error(*.0))]
    #[doc(alias = "EAI_SYSTEM")]
    System(i32),
    /// An unknown code.
    #[error("getaddrinfo failed with code {0}")]
    Unknown(i32),
}

/// Codes of glibc that the libc crate lacks.
const EAI_ADDRFAMILY: i32 = -9;

impl NameError {
    pub(crate) fn from_code(code: i32) -> Self {
        match code {
            EAI_ADDRFAMILY => Self::AddressFamily,
            libc::EAI_AGAIN => Self::Again,
            libc::EAI_BADFLAGS => Self::BadFlags,
            libc::EAI_FAIL => Self::Fail,
            libc::EAI_FAMILY => Self::Family,
            libc::EAI_MEMORY => Self::Memory,
            libc::EAI_NODATA => Self::NoData,
            libc::EAI_NONAME => Self::NoName,
            libc::EAI_SERVICE => Self::Service,
            libc::EAI_SOCKTYPE => Self::SocketType,
            code => Self::Unknown(code),
        }
    }
}

impl Error {
    /// The error number, positive, if the kernel or the C library returned one: of
    /// [`Rdma`](Self::Rdma), [`Administrator`](Self::Administrator),
    /// [`Interfaces`](Self::Interfaces) and [`NameError::System`].
    #[must_use]
    #[doc(alias = "errno")]
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Rdma(error) => error.raw_os_error(),
            Self::Administrator(failure) => failure.raw_os_error(),
            Self::Interfaces(errno) | Self::Name(NameError::System(errno)) => Some(*errno),
            _ => None,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Rdma(error) => Self::from(error.clone()).kind(),
            Error::LookupDeadline | Error::TooManyLookups => io::ErrorKind::TimedOut,
            Error::NoThread(kind) => *kind,
            Error::Administrator(failure) => match failure.raw_os_error() {
                Some(libc::ENODATA) => io::ErrorKind::NotFound,
                Some(errno) => Self::from_raw_os_error(errno).kind(),
                None => io::ErrorKind::Other,
            },
            Error::Interfaces(errno) | Error::Name(NameError::System(errno)) => {
                Self::from_raw_os_error(*errno).kind()
            }
            Error::Name(NameError::NoName | NameError::NoData | NameError::AddressFamily)
            | Error::NoInfinibandPort
            | Error::NoService(_)
            | Error::NothingResolved => io::ErrorKind::NotFound,
            Error::TooManyResolutions
            | Error::LookupPanicked
            | Error::LookupDropped
            | Error::Name(_) => io::ErrorKind::Other,
            Error::NothingToResolve
            | Error::Hints(_)
            | Error::QpType { .. }
            | Error::SaAndDns
            | Error::SaWithNode
            | Error::SaWithoutService
            | Error::ServiceName(_)
            | Error::NulInText => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_numbers_are_kept() {
        for (error, errno) in [
            (Error::Interfaces(libc::ENOBUFS), Some(libc::ENOBUFS)),
            (NameError::System(libc::EMFILE).into(), Some(libc::EMFILE)),
            (
                rdmacm_core::Error::Wait {
                    errno: libc::ENOMEM,
                }
                .into(),
                Some(libc::ENOMEM),
            ),
            (NameError::NoName.into(), None),
            (Error::LookupDeadline, None),
        ] {
            assert_eq!(error.raw_os_error(), errno, "{error:?}");
        }
    }

    #[test]
    fn a_lookup_that_waited_until_the_deadline_has_timed_out() {
        for error in [Error::LookupDeadline, Error::TooManyLookups] {
            assert_eq!(io::Error::from(error).kind(), io::ErrorKind::TimedOut);
        }
    }

    #[test]
    fn an_error_that_holds_another_has_its_text_and_no_source() {
        let errors = [
            Error::Name(NameError::System(libc::EMFILE)),
            Error::NoThread(io::ErrorKind::WouldBlock),
            Error::Interfaces(libc::ENOBUFS),
            Error::Rdma(rdmacm_core::Error::Busy),
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
    fn every_code_is_an_error_of_its_own() {
        let codes = [-9, -3, -1, -4, -6, -10, -5, -2, -8, -7];
        let errors: Vec<_> = codes.map(NameError::from_code).into();
        for (at, error) in errors.iter().enumerate() {
            assert!(!matches!(error, NameError::Unknown(_)), "{error:?}");
            assert!(!errors[..at].contains(error), "{error:?}");
        }
        assert_eq!(NameError::from_code(-77), NameError::Unknown(-77));
    }
}
