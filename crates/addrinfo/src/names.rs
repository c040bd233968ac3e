//! Resolves a name and a service to IP addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use rdmacm_core::Family;

use crate::error::{NameError, Result};
use crate::flags::AddrInfoFlags;
use crate::lookup_limit::LookupLimits;

#[cfg(feature = "hickory")]
mod hickory;
mod lookup;
mod name_resolver;
mod numeric;
mod system;

#[cfg(feature = "hickory")]
pub use hickory::HickoryResolver;
pub use name_resolver::{Host, HostQuery, NameResolver, ServiceKind};
pub(crate) use numeric::is_of_one_link;
pub use system::SystemResolver;

/// The name and the service to look up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameQuery<'name> {
    pub(crate) node: Option<&'name str>,
    pub(crate) service: Option<&'name str>,
    pub(crate) family: Option<Family>,
    pub(crate) datagram: bool,
    pub(crate) flags: AddrInfoFlags,
    pub(crate) canonical_name: bool,
}

/// The name resolver, its lookups and the deadline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResolverContext<'a> {
    /// The name resolver; `None` for the system's.
    pub(crate) resolver: Option<&'a Arc<dyn NameResolver>>,
    pub(crate) limits: &'a LookupLimits,
    pub(crate) until: Option<Instant>,
}

/// One address of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedAddress {
    pub(crate) address: SocketAddr,
    pub(crate) canonical_name: Option<String>,
}

impl NameQuery<'_> {
    /// Resolves to every address, in the name resolver's order.
    ///
    /// Numeric addresses and ports are parsed here. Everything else goes to the
    /// name resolver, which may ask a server, on a thread that may outlive the deadline.
    pub(crate) fn resolve(&self, context: ResolverContext<'_>) -> Result<Vec<NamedAddress>> {
        if let Some(addresses) = self.parse()? {
            return Ok(addresses);
        }
        let Self {
            family,
            datagram,
            flags,
            canonical_name,
            ..
        } = *self;
        let node = self.node.map(str::to_owned);
        let service = self.service.map(str::to_owned);
        let resolver = context.resolver.cloned();
        let until = context.until;
        let lookup = move || {
            let query = NameQuery {
                node: node.as_deref(),
                service: service.as_deref(),
                family,
                datagram,
                flags,
                canonical_name,
            };
            query.look_up(resolver.as_deref().unwrap_or(&SystemResolver), until)
        };
        context.limits.run(until, lookup)?
    }

    /// Resolves the service alone.
    pub(crate) fn resolve_port(&self, context: ResolverContext<'_>) -> Result<u16> {
        if let Some(port) = self.port()? {
            return Ok(port);
        }
        let query = NameQuery {
            node: None,
            ..*self
        };
        let found = query.resolve(context)?;
        Ok(found.first().map_or(0, |first| first.address.port()))
    }

    /// Parses numeric addresses and ports; `None` if the name resolver is needed.
    fn parse(&self) -> Result<Option<Vec<NamedAddress>>> {
        let Some(port) = self.port()? else {
            return Ok(None);
        };
        let Some(node) = self.node else {
            return Ok(Some(self.without_node(port)));
        };
        self.numeric(node, port)
    }

    /// Looks up the service first, as the C library does, so that an unknown service
    /// causes no lookup of the host.
    fn look_up(
        &self,
        resolver: &dyn NameResolver,
        until: Option<Instant>,
    ) -> Result<Vec<NamedAddress>> {
        let port = match (self.service, self.port()?) {
            (_, Some(port)) => port,
            (Some(service), None) => resolver.service(service, self.service_kind())?,
            (None, None) => 0,
        };
        let Some(node) = self.node else {
            return Ok(self.without_node(port));
        };
        if let Some(found) = self.numeric(node, port)? {
            return Ok(found);
        }
        let query = HostQuery {
            name: node,
            family: self.family,
            canonical_name: self.canonical_name,
            until,
        };
        self.named(resolver.host(&query)?, port)
    }

    /// Parses a numeric address: strictly, then in the further forms that the C library
    /// accepts. `None` for a name.
    fn numeric(&self, node: &str, port: u16) -> Result<Option<Vec<NamedAddress>>> {
        if let Some(numeric) = numeric::parse(node) {
            let address = numeric.of_family(self.family)?.with_port(port)?;
            let canonical_name = self.canonical_name.then(|| node.to_owned());
            return Ok(Some(vec![NamedAddress {
                address,
                canonical_name,
            }]));
        }
        match system::numeric(node, self.family) {
            Err(NameError::NoName) if !self.is_numeric() => Ok(None),
            host => self.named(host?, port).map(Some),
        }
    }

    fn named(&self, host: Host, port: u16) -> Result<Vec<NamedAddress>> {
        let mut addresses = host.addresses;
        addresses.retain(|address| self.admits(address));
        if addresses.is_empty() {
            return Err(NameError::NoData.into());
        }
        let mut canonical_name = host.canonical_name.filter(|_| self.canonical_name);
        let mut named = |mut address: SocketAddr| {
            address.set_port(port);
            NamedAddress {
                address,
                canonical_name: canonical_name.take(),
            }
        };
        Ok(addresses.into_iter().map(&mut named).collect())
    }

    fn is_numeric(&self) -> bool {
        self.flags.contains(AddrInfoFlags::NUMERICHOST)
    }

    fn service_kind(&self) -> ServiceKind {
        if self.datagram {
            ServiceKind::Datagram
        } else {
            ServiceKind::Stream
        }
    }

    fn port(&self) -> Result<Option<u16>> {
        match self.service {
            None => Ok(Some(0)),
            Some(service) => numeric::port(service),
        }
    }

    /// `getaddrinfo(3)` without a node: the wildcards if passive, otherwise the
    /// loopback addresses.
    fn without_node(&self, port: u16) -> Vec<NamedAddress> {
        let passive = self.flags.contains(AddrInfoFlags::PASSIVE);
        let (v4, v6) = if passive {
            (Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED)
        } else {
            (Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST)
        };
        // glibc names the IPv4 wildcard first and the IPv6 loopback first.
        let mut both = [IpAddr::V4(v4), IpAddr::V6(v6)];
        if !passive {
            both.reverse();
        }
        both.into_iter()
            .map(|ip| SocketAddr::new(ip, port))
            .filter(|address| self.admits(address))
            .map(NamedAddress::from)
            .collect()
    }

    fn admits(&self, address: &SocketAddr) -> bool {
        match self.family {
            None => true,
            Some(Family::V4) => address.is_ipv4(),
            Some(Family::V6) => address.is_ipv6(),
            Some(_) => false,
        }
    }
}

/// A numeric address of this family at a port number, or at port 0 without a service. `None` for
/// anything else: a name, an error, an address in a form that only the C library knows, and one
/// with a scope, whose interface has to be looked up.
pub(crate) fn literal(
    node: &str,
    service: Option<&str>,
    family: Option<Family>,
) -> Option<SocketAddr> {
    let port = service.map_or(Some(0), numeric::plain_port)?;
    let address = numeric::parse(node)?.of_family(family).ok()?;
    address.without_scope(port)
}

/// Parses a numeric IP address, with port 0: a strict dotted quad, or an IPv6 address
/// with an optional scope, which is an interface name for a link-local address or a
/// number for any. `None` for anything else, and for a scope that no interface has.
#[must_use]
pub fn parse_numeric(text: &str) -> Option<SocketAddr> {
    numeric::parse(text)?.with_port(0).ok()
}

impl From<SocketAddr> for NamedAddress {
    fn from(address: SocketAddr) -> Self {
        Self {
            address,
            canonical_name: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn names<'name>(node: Option<&'name str>, service: Option<&'name str>) -> NameQuery<'name> {
        NameQuery {
            node,
            service,
            family: None,
            datagram: false,
            flags: AddrInfoFlags::empty(),
            canonical_name: false,
        }
    }

    fn resolve(names: &NameQuery<'_>) -> Result<Vec<NamedAddress>> {
        names.resolve(ResolverContext {
            resolver: None,
            limits: &LookupLimits::default(),
            until: None,
        })
    }

    fn addresses(names: &NameQuery<'_>) -> Vec<String> {
        let found = resolve(names).unwrap();
        found.iter().map(|one| one.address.to_string()).collect()
    }

    #[test]
    fn numeric_addresses_need_no_system() {
        let read = names(Some("10.1.0.7"), Some("7471")).parse().unwrap();
        let address = SocketAddr::from(([10, 1, 0, 7], 7471));
        assert_eq!(read, Some(vec![NamedAddress::from(address)]));
        assert_eq!(literal("10.1.0.7", Some("7471"), None), Some(address));
        for (node, service) in [("localhost", "7471"), ("10.1.0.7", "http")] {
            assert_eq!(names(Some(node), Some(service)).parse(), Ok(None));
            assert_eq!(literal(node, Some(service), None), None);
        }
    }

    /// Whether or not an address is a literal, what is found is the same.
    #[test]
    fn a_literal_is_what_a_query_finds() {
        for node in ["10.1.0.7", "fd71::1", "fe80::1", "::ffff:10.1.0.7"] {
            for family in [None, Some(Family::V4), Some(Family::V6), Some(Family::Ib)] {
                for service in [None, Some("7471")] {
                    let query = NameQuery {
                        family,
                        ..names(Some(node), service)
                    };
                    let found = query.parse().ok().flatten();
                    let found = found.map(|list| list[0].address);
                    assert_eq!(literal(node, service, family), found, "{query:?}");
                }
            }
        }
        for (node, service) in [
            ("010.1.0.7", "7471"),
            ("10.7", "7471"),
            ("10.1.0.7", "70000"),
            ("10.1.0.7", "+7"),
            ("10.1.0.7", ""),
            ("fe80::1%lo", "7471"),
            ("fe80::1%1", "7471"),
        ] {
            assert_eq!(literal(node, Some(service), None), None, "{node} {service}");
        }
    }

    #[test]
    fn the_system_knows_localhost_and_services() {
        assert!(
            addresses(&names(Some("localhost"), Some("7471"))).contains(&"127.0.0.1:7471".into())
        );
    }

    #[test]
    fn without_a_node_the_result_is_the_systems() {
        for passive in [false, true] {
            for family in [None, Some(Family::V4), Some(Family::V6)] {
                let mut ours = names(None, Some("7"));
                ours.flags.set(AddrInfoFlags::PASSIVE, passive);
                ours.family = family;
                let system = system::without_node(passive, family, 7).unwrap();
                let system = system.into_iter().map(NamedAddress::from).collect();
                assert_eq!(ours.parse(), Ok(Some(system)), "{passive} {family:?}");
            }
        }
    }

    #[test]
    fn an_address_of_the_other_family_is_refused() {
        let mut six = names(Some("10.1.0.7"), None);
        six.family = Some(Family::V6);
        assert_eq!(six.parse(), Err(Error::Name(NameError::AddressFamily)));
    }

    #[test]
    fn a_name_as_numeric_host_is_an_error_without_a_lookup() {
        let mut numeric = names(Some("no.such.host.invalid"), None);
        numeric.flags = AddrInfoFlags::NUMERICHOST;
        assert_eq!(resolve(&numeric), Err(Error::Name(NameError::NoName)));
    }

    #[test]
    fn an_unknown_service_is_a_service_error() {
        assert_eq!(
            resolve(&names(Some("127.0.0.1"), Some("no-such-service"))),
            Err(Error::Name(NameError::Service))
        );
    }
}
