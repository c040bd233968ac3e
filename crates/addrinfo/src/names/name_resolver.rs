//! Looking up the names of hosts and services.

use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

use rdmacm_core::Family;

use super::system::SystemResolver;
use crate::error::NameError;

/// Looks up the addresses of hosts: the system's name resolver, or one of your own.
///
/// Numeric addresses do not reach the name resolver, nor do the names of local interfaces
/// and devices in passive resolutions. If there is a deadline, each lookup runs on a
/// thread of its own that may outlive the deadline, so the name resolver may block.
///
/// ```
/// use std::net::{Ipv4Addr, SocketAddr};
/// use rdmacm_addrinfo::{AddrInfoResolver, Hints, Host, HostQuery, NameError, NameResolver};
///
/// #[derive(Debug)]
/// struct Cluster;
///
/// impl NameResolver for Cluster {
///     fn host(&self, query: &HostQuery<'_>) -> Result<Host, NameError> {
///         let number = query.name.strip_prefix("storage-");
///         let number = number.and_then(|number| number.parse().ok());
///         let address = Ipv4Addr::new(10, 1, 0, number.ok_or(NameError::NoName)?);
///         Ok(Host::from_iter([SocketAddr::from((address, 0))]))
///     }
/// }
///
/// let resolver = AddrInfoResolver::new().name_resolver(Cluster);
/// let found = resolver.addresses("storage-7", "7471", &Hints::rc())?;
/// assert_eq!(found, [([10, 1, 0, 7], 7471).into()]);
/// # Ok::<(), rdmacm_addrinfo::Error>(())
/// ```
pub trait NameResolver: fmt::Debug + Send + Sync {
    /// Returns every address of a host, in the order in which to try them. The caller
    /// drops those of another family than the one asked for.
    ///
    /// # Errors
    /// Why the lookup failed. An answer without addresses counts as
    /// [`NameError::NoData`].
    fn host(&self, query: &HostQuery<'_>) -> Result<Host, NameError>;

    /// Returns the port of a service name, in host order. By default asks the system, as
    /// by `services(5)`.
    ///
    /// # Errors
    /// [`NameError::Service`] for an unknown service.
    fn service(&self, name: &str, kind: ServiceKind) -> Result<u16, NameError> {
        SystemResolver.service(name, kind)
    }
}

/// The host to look up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostQuery<'a> {
    /// The host's name, without NUL bytes.
    pub name: &'a str,
    /// The family asked for; `None` for any.
    pub family: Option<Family>,
    /// Whether the canonical name is asked for.
    pub canonical_name: bool,
    /// The deadline of the lookup, on the system's monotonic clock.
    pub until: Option<Instant>,
}

/// The result of looking up a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Its addresses. Their ports are ignored.
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
