//! Who knows names.

use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

use rdmacm_core::Family;

use super::system::SystemResolver;
use crate::error::NameError;

/// Who knows the addresses of hosts: the system, or somebody's own.
///
/// What is written in figures never gets here, nor do the names of local
/// interfaces and devices in passive resolutions. Where there is a deadline, each
/// question is asked on a thread of its own, which is left behind when the
/// deadline passes: blocking delays nobody else.
///
/// ```
/// use std::net::{Ipv4Addr, SocketAddr};
/// use rdmacm_addrinfo::{Directory, Hints, Host, HostQuestion, NameError, Resolver};
///
/// #[derive(Debug)]
/// struct Cluster;
///
/// impl Resolver for Cluster {
///     fn host(&self, question: &HostQuestion<'_>) -> Result<Host, NameError> {
///         let number = question.name.strip_prefix("storage-");
///         let number = number.and_then(|number| number.parse().ok());
///         let address = Ipv4Addr::new(10, 1, 0, number.ok_or(NameError::NoName)?);
///         Ok(Host::from_iter([SocketAddr::from((address, 0))]))
///     }
/// }
///
/// let directory = Directory::new().resolver(Cluster);
/// let found = directory.addresses("storage-7", "7471", &Hints::rc())?;
/// assert_eq!(found, [([10, 1, 0, 7], 7471).into()]);
/// # Ok::<(), rdmacm_addrinfo::Error>(())
/// ```
pub trait Resolver: fmt::Debug + Send + Sync {
    /// Every address of a host, in the order in which they are to be tried. Those
    /// of another family than the one asked for are left out by the caller.
    ///
    /// # Errors
    /// Why there is none; an answer without addresses counts as
    /// [`NameError::NoData`].
    fn host(&self, question: &HostQuestion<'_>) -> Result<Host, NameError>;

    /// The port of a service's name, host order; what `services(5)` and its kin
    /// say unless this is implemented.
    ///
    /// # Errors
    /// [`NameError::Service`] for a name that nobody knows.
    fn service(&self, name: &str, kind: ServiceKind) -> Result<u16, NameError> {
        SystemResolver.service(name, kind)
    }
}

/// Which host is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostQuestion<'a> {
    /// The host's name; without a NUL.
    pub name: &'a str,
    /// The only family that is of use.
    pub family: Option<Family>,
    /// Whether anybody wants to know the canonical name.
    pub canonical_name: bool,
    /// When the answer is of no use any more, by the system's clock.
    pub until: Option<Instant>,
}

/// What is known of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Its addresses; their ports do not count.
    pub addresses: Vec<SocketAddr>,
    /// Its canonical name.
    pub canonical_name: Option<String>,
}

impl FromIterator<SocketAddr> for Host {
    /// A host without a canonical name.
    fn from_iter<I: IntoIterator<Item = SocketAddr>>(addresses: I) -> Self {
        Self {
            addresses: addresses.into_iter().collect(),
            canonical_name: None,
        }
    }
}

/// Which kind of service a name is of: the same name may have two ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceKind {
    /// Connections: what `services(5)` calls `tcp`.
    Stream,
    /// Datagrams: `udp`.
    Datagram,
}
