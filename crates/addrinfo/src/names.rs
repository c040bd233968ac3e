//! From a name and a service to IP addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use rdmacm_core::Family;

use crate::error::{NameError, Result};
use crate::flags::AddrInfoFlags;

#[cfg(feature = "hickory")]
mod hickory;
mod literal;
mod lookup;
mod resolver;
mod system;

#[cfg(feature = "hickory")]
pub use hickory::HickoryResolver;
pub(crate) use lookup::Lookups;
pub use resolver::{Host, HostQuestion, Resolver, ServiceKind};
pub use system::SystemResolver;

/// What is asked of the names.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    pub(crate) node: Option<String>,
    pub(crate) service: Option<String>,
    pub(crate) family: Option<Family>,
    pub(crate) datagram: bool,
    pub(crate) flags: AddrInfoFlags,
    pub(crate) canonical_name: bool,
}

/// Whom to ask, and by when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Knowledge<'a> {
    pub(crate) resolver: &'a Arc<dyn Resolver>,
    pub(crate) lookups: &'a Lookups,
    pub(crate) until: Option<Instant>,
}

/// One address a name has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) address: SocketAddr,
    pub(crate) canonical_name: Option<String>,
}

impl Names {
    /// Every address, in the resolver's order.
    ///
    /// Addresses and ports in figures are read here; anything else is the
    /// resolver's to know, which may ask a server and is done on a thread that
    /// can be left behind.
    pub(crate) fn resolve(&self, knowledge: Knowledge<'_>) -> Result<Vec<Named>> {
        if let Some(addresses) = self.read()? {
            return Ok(addresses);
        }
        let (names, until) = (self.clone(), knowledge.until);
        let resolver = Arc::clone(knowledge.resolver);
        let ask = move || names.ask(resolver.as_ref(), until);
        knowledge.lookups.run(until, ask)?
    }

    /// What the caller's text says by itself; `None` where it needs the resolver.
    fn read(&self) -> Result<Option<Vec<Named>>> {
        let Some(port) = self.port()? else {
            return Ok(None);
        };
        let Some(node) = &self.node else {
            return Ok(Some(self.without_node(port)));
        };
        self.figures(node, port)
    }

    /// The service first, as the C library does: one that nobody knows costs no
    /// question about the host.
    fn ask(&self, resolver: &dyn Resolver, until: Option<Instant>) -> Result<Vec<Named>> {
        let port = match (&self.service, self.port()?) {
            (_, Some(port)) => port,
            (Some(service), None) => resolver.service(service, self.service_kind())?,
            (None, None) => 0,
        };
        let Some(node) = &self.node else {
            return Ok(self.without_node(port));
        };
        if let Some(found) = self.figures(node, port)? {
            return Ok(found);
        }
        let question = HostQuestion {
            name: node,
            family: self.family,
            canonical_name: self.canonical_name,
            until,
        };
        self.named(resolver.host(&question)?, port)
    }

    /// An address in figures: strictly, or in the further forms that the system
    /// reads. `None` for a name.
    fn figures(&self, node: &str, port: u16) -> Result<Option<Vec<Named>>> {
        if let Some(literal) = literal::parse(node) {
            let address = literal.of_family(self.family)?.with_port(port)?;
            return Ok(Some(vec![self.literal(address)]));
        }
        match system::figures(node, self.family) {
            Err(NameError::NoName) if !self.is_numeric() => Ok(None),
            host => self.named(host?, port).map(Some),
        }
    }

    fn named(&self, host: Host, port: u16) -> Result<Vec<Named>> {
        let mut addresses = host.addresses;
        addresses.retain(|address| self.admits(address));
        if addresses.is_empty() {
            return Err(NameError::NoData.into());
        }
        let mut canonical_name = host.canonical_name.filter(|_| self.canonical_name);
        Ok(addresses
            .into_iter()
            .map(|mut address| {
                address.set_port(port);
                Named {
                    address,
                    canonical_name: canonical_name.take(),
                }
            })
            .collect())
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
        match &self.service {
            None => Ok(Some(0)),
            Some(service) => literal::port(service),
        }
    }

    /// `getaddrinfo(3)` without a node: the wildcards if passive, otherwise the
    /// loopback addresses.
    fn without_node(&self, port: u16) -> Vec<Named> {
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
            .map(Named::from)
            .collect()
    }

    fn literal(&self, address: SocketAddr) -> Named {
        Named {
            address,
            canonical_name: self.canonical_name.then(|| self.node.clone()).flatten(),
        }
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

/// Reads an IP address in figures, with port 0: a strict dotted quad, or an IPv6
/// address with an optional scope: a link-local one's by interface name, or any by
/// number. `None` for anything else, a scope that no interface has included.
#[must_use]
pub fn parse_numeric(text: &str) -> Option<SocketAddr> {
    literal::parse(text)?.with_port(0).ok()
}

impl From<SocketAddr> for Named {
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

    fn names(node: Option<&str>, service: Option<&str>) -> Names {
        Names {
            node: node.map(str::to_owned),
            service: service.map(str::to_owned),
            family: None,
            datagram: false,
            flags: AddrInfoFlags::empty(),
            canonical_name: false,
        }
    }

    fn resolve(names: &Names) -> Result<Vec<Named>> {
        names.resolve(Knowledge {
            resolver: &(Arc::new(SystemResolver) as Arc<dyn Resolver>),
            lookups: &Lookups::default(),
            until: None,
        })
    }

    fn addresses(names: &Names) -> Vec<String> {
        let found = resolve(names).unwrap();
        found.iter().map(|one| one.address.to_string()).collect()
    }

    #[test]
    fn figures_need_no_system() {
        let read = names(Some("10.1.0.7"), Some("7471")).read().unwrap();
        assert_eq!(
            read,
            Some(vec![Named::from(SocketAddr::from(([10, 1, 0, 7], 7471)))])
        );
        assert_eq!(names(Some("localhost"), Some("7471")).read(), Ok(None));
        assert_eq!(names(Some("10.1.0.7"), Some("http")).read(), Ok(None));
    }

    #[test]
    fn the_system_knows_localhost_and_services() {
        assert!(
            addresses(&names(Some("localhost"), Some("7471"))).contains(&"127.0.0.1:7471".into())
        );
    }

    #[test]
    fn without_a_node_we_say_what_the_system_says() {
        for passive in [false, true] {
            for family in [None, Some(Family::V4), Some(Family::V6)] {
                let mut ours = names(None, Some("7"));
                ours.flags.set(AddrInfoFlags::PASSIVE, passive);
                ours.family = family;
                let system = system::without_node(passive, family, 7).unwrap();
                let system = system.into_iter().map(Named::from).collect();
                assert_eq!(ours.read(), Ok(Some(system)), "{passive} {family:?}");
            }
        }
    }

    #[test]
    fn an_address_of_the_other_family_is_refused() {
        let mut six = names(Some("10.1.0.7"), None);
        six.family = Some(Family::V6);
        assert_eq!(six.read(), Err(Error::Name(NameError::AddressFamily)));
    }

    #[test]
    fn a_numeric_host_that_is_a_name_is_an_error_without_a_question() {
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
