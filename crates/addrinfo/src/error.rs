//! Why nothing could be resolved.

use std::fmt;
use std::io;

use rdmacm_core::{EventFailure, InfinibandPort, PortSpace, QpType};

use crate::unreachable::Unreachable;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why nothing could be resolved. What keeps RDMA from reaching one of several
/// addresses is no error of this kind, see [`Unreachable`](crate::Unreachable).
///
/// The text is complete: it includes what the error holds, and
/// [`source`](std::error::Error::source) returns `None`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither a node nor a service nor an address nor a route was given.
    #[error("nothing to resolve: give a node, a service or an address in the hints")]
    NothingToResolve,
    /// The hints contradict one another.
    #[error("the hints do not fit together: {0}")]
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
    #[error("a service is looked for either by the subnet administrator or as a host's (SA, DNS)")]
    SaAndDns,
    /// A node together with flag SA.
    #[error("the subnet administrator (SA) knows services and no nodes")]
    SaWithNode,
    /// No service together with flag SA.
    #[error("the subnet administrator (SA) is asked for a service, and there is none")]
    SaWithoutService,
    /// A service that the subnet administrator cannot be asked for.
    #[error("the name of an InfiniBand service has 1 to 63 bytes, and this has {0}")]
    ServiceName(usize),
    /// No active port of InfiniBand is there, whose subnet administrator could be
    /// asked.
    #[error(
        "no active InfiniBand port is here, and only InfiniBand has a subnet administrator to ask"
    )]
    NoInfinibandPort,
    /// The subnet administrators of all ports were asked, and none told of the
    /// service.
    #[error("no InfiniBand port tells of the service{}", Listed(.0))]
    NoService(Vec<Unanswered>),
    /// The subnet administrator was asked for an id, and did not tell of the service.
    #[error("the subnet administrator does not tell of the service: {0}")]
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
    /// Too many lookups of this directory still wait for a name server.
    #[error("too many lookups still wait for a name server that does not answer")]
    TooManyLookups,
    /// No thread could be had for the lookup.
    #[error("start a thread for the lookup: {0}")]
    NoThread(io::ErrorKind),
    /// The lookup ended without an answer.
    #[error("the lookup's thread died")]
    LookupDied,
    /// Nothing is resolved for the id yet, or it was handed over already.
    #[error("the id has no result of a resolution")]
    NothingResolved,
    /// The kernel did not tell the addresses of this machine.
    #[error("ask for the addresses of the network interfaces: {}", io::Error::from_raw_os_error(*.0))]
    Interfaces(i32),
    /// The connection manager could not be asked at all.
    #[error(transparent)]
    Rdma(#[from] rdmacm_core::Error),
}

/// A port of InfiniBand that does not tell of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unanswered {
    /// The port.
    pub port: InfinibandPort,
    /// Why it does not.
    pub why: Unreachable,
}

/// What each port says, in a row.
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

/// What `getaddrinfo(3)` answers, one variant for each of its codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The node has no addresses of the family asked for.
    #[error("the node has no address of this family")]
    #[doc(alias = "EAI_ADDRFAMILY")]
    AddressFamily,
    /// The name server failed for now.
    #[error("the name server failed for now, try again later")]
    #[doc(alias = "EAI_AGAIN")]
    Again,
    /// Flags that do not fit together.
    #[error("the flags do not fit together")]
    #[doc(alias = "EAI_BADFLAGS")]
    BadFlags,
    /// The name server failed for good. glibc 2.36 says this of no answer of a name
    /// server: to it a name is not known then, or the server failed for now.
    #[error("the name server failed for good")]
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
    /// A code this library does not know.
    #[error("getaddrinfo failed with code {0}")]
    Unknown(i32),
}

/// glibc's numbers of codes that the libc crate does not name.
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
    /// The error number, positive, where the kernel or the C library gave one: of
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
            Error::LookupDeadline => io::ErrorKind::TimedOut,
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
            Error::TooManyLookups | Error::LookupDied | Error::Name(_) => io::ErrorKind::Other,
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
    fn whoever_gave_an_error_number_it_is_told() {
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
