//! From a name and a service to IP addresses.

use std::ffi::CString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Instant;

use rdmacm_core::Family;

use crate::error::{Error, NameError, Result};
use crate::flags::AddrInfoFlags;

mod literal;
mod lookup;
mod system;

pub(crate) use lookup::Lookups;
use system::{Question, SocketKind};

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

/// One address a name has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) address: SocketAddr,
    pub(crate) canonical_name: Option<String>,
}

impl Names {
    /// Every address, in the order of `getaddrinfo(3)`, by `until`.
    ///
    /// Addresses and ports in figures are read here; anything else is the
    /// system's to know, which may ask a server and is done on a thread that
    /// can be left behind.
    pub(crate) fn resolve(&self, lookups: &Lookups, until: Option<Instant>) -> Result<Vec<Named>> {
        if self.texts().any(|text| text.contains('\0')) {
            return Err(Error::NulInText);
        }
        if let Some(addresses) = self.read()? {
            return Ok(addresses);
        }
        let question = self.question()?;
        lookups.run(until, move || system::ask(&question))?
    }

    /// What the caller's text says by itself; `None` where it needs the system.
    fn read(&self) -> Result<Option<Vec<Named>>> {
        let Some(port) = self.port()? else {
            return Ok(None);
        };
        match &self.node {
            None => Ok(Some(self.without_node(port))),
            Some(node) => match literal::parse(node)? {
                Some(ip) => self.with_family(ip.with_port(port)).map(Some),
                // The system reads more forms of addresses than these.
                None => Ok(None),
            },
        }
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        [&self.node, &self.service]
            .into_iter()
            .flatten()
            .map(String::as_str)
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

    fn with_family(&self, address: SocketAddr) -> Result<Vec<Named>> {
        if self.admits(&address) {
            let canonical_name = self.canonical_name.then(|| self.node.clone()).flatten();
            Ok(vec![Named {
                address,
                canonical_name,
            }])
        } else {
            Err(NameError::AddressFamily.into())
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

    fn question(&self) -> Result<Question> {
        Ok(Question {
            node: text(self.node.as_deref())?,
            service: text(self.service.as_deref())?,
            family: self.family,
            kind: if self.datagram {
                SocketKind::Datagram
            } else {
                SocketKind::Stream
            },
            flags: self.flags,
            canonical_name: self.canonical_name,
        })
    }
}

/// Reads an IP address in figures, with port 0: a strict dotted quad, or an IPv6
/// address with an optional scope by interface name or number. `None` for
/// anything else, a scope that no interface has included.
#[must_use]
pub fn parse_numeric(text: &str) -> Option<SocketAddr> {
    let literal = literal::parse(text).ok()??;
    Some(literal.with_port(0))
}

impl From<SocketAddr> for Named {
    fn from(address: SocketAddr) -> Self {
        Self {
            address,
            canonical_name: None,
        }
    }
}

fn text(text: Option<&str>) -> Result<Option<CString>> {
    text.map(|text| CString::new(text).map_err(|_| Error::NulInText))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn addresses(names: &Names) -> Vec<String> {
        let found = names.resolve(&Lookups::new(), None).unwrap();
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
                let system = system::ask(&ours.question().unwrap()).unwrap();
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
        assert_eq!(
            numeric.resolve(&Lookups::new(), None),
            Err(Error::Name(NameError::NoName))
        );
    }

    #[test]
    fn a_nul_is_refused() {
        for (node, service) in [
            (Some("host\0name"), None),
            (Some("fe80::1%lo\0"), Some("7")),
            (None, Some("7\0")),
        ] {
            assert_eq!(
                names(node, service).resolve(&Lookups::new(), None),
                Err(Error::NulInText)
            );
        }
    }

    #[test]
    fn an_unknown_service_is_a_service_error() {
        assert_eq!(
            names(Some("127.0.0.1"), Some("no-such-service")).resolve(&Lookups::new(), None),
            Err(Error::Name(NameError::Service))
        );
    }
}
