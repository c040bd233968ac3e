//! Numeric addresses and ports.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use rdmacm_core::Family;

use crate::error::{NameError, Result};
use crate::local::{alternative_index, interface_index};

/// A numeric address without a port, with its scope as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numeric<'text> {
    ip: IpAddr,
    scope: Option<&'text str>,
}

impl Numeric<'_> {
    /// Converts to the family asked for. An IPv4-mapped IPv6 address
    /// (`::ffff:10.1.0.7`) belongs to both.
    pub(super) fn of_family(self, family: Option<Family>) -> Result<Self> {
        let ip = match (self.ip, family) {
            (ip, None)
            | (ip @ IpAddr::V4(_), Some(Family::V4))
            | (ip @ IpAddr::V6(_), Some(Family::V6)) => Some(ip),
            (IpAddr::V6(ip), Some(Family::V4)) => ip.to_ipv4_mapped().map(IpAddr::V4),
            _ => None,
        };
        let ip = ip.ok_or(NameError::AddressFamily)?;
        Ok(Self { ip, ..self })
    }

    /// The address at a port, if it has no scope.
    pub(super) fn without_scope(self, port: u16) -> Option<SocketAddr> {
        self.scope.is_none().then(|| SocketAddr::new(self.ip, port))
    }

    pub(super) fn with_port(self, port: u16) -> Result<SocketAddr> {
        let scope_id = self.scope_id()?;
        Ok(match self.ip {
            IpAddr::V4(ip) => SocketAddrV4::new(ip, port).into(),
            IpAddr::V6(ip) => SocketAddrV6::new(ip, port, 0, scope_id).into(),
        })
    }

    /// Resolves the scope as the C library does: an interface name, if the address is
    /// link-local, before a number; an alternative name is the last guess, because it
    /// takes long.
    fn scope_id(self) -> Result<u32> {
        let Some(scope) = self.scope else {
            return Ok(0);
        };
        let may_have_name = is_of_one_link(self.ip);
        if may_have_name {
            if let Some(index) = interface_index(scope)? {
                return Ok(index);
            }
        }
        // `parse` accepts a sign.
        if scope.bytes().all(|byte| byte.is_ascii_digit()) {
            return scope.parse().map_err(|_| NameError::NoName.into());
        }
        let alternative = may_have_name
            .then(|| alternative_index(scope))
            .transpose()?;
        alternative
            .flatten()
            .ok_or_else(|| NameError::NoName.into())
    }
}

/// Whether the address is link-local, unicast or multicast.
pub(crate) fn is_of_one_link(ip: IpAddr) -> bool {
    let IpAddr::V6(ip) = ip else { return false };
    ip.is_unicast_link_local() || ip.segments()[0] & 0xff0f == 0xff02
}

/// Parses a strict dotted quad or an IPv6 address, whose scope may be an interface's
/// name or number (`fe80::1%eth0`, `fe80::1%2`). `None` for anything else, also for the
/// C library's other forms of IPv4 addresses: it reads `010.1.0.1` as octal.
pub(super) fn parse(text: &str) -> Option<Numeric<'_>> {
    if let Ok(ip) = text.parse() {
        return Some(Numeric { ip, scope: None });
    }
    let (address, scope) = text.split_once('%')?;
    Some(Numeric {
        ip: IpAddr::V6(address.parse::<Ipv6Addr>().ok()?),
        scope: Some(scope),
    })
}

/// Parses a port number; `None` for a service name. A number that is no port is an
/// error: the C library reads 70000 as 4464 and the empty text as 0.
pub(super) fn port(text: &str) -> Result<Option<u16>> {
    if let Some(port) = plain_port(text) {
        return Ok(Some(port));
    }
    let numeric = text.trim_start().trim_start_matches(['+', '-']);
    if numeric.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NameError::Service.into());
    }
    Ok(None)
}

/// A port in decimal digits only.
pub(super) fn plain_port(text: &str) -> Option<u16> {
    // `parse` accepts a sign.
    let is_number = text.as_bytes().first().is_some_and(u8::is_ascii_digit);
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address(text: &str) -> Option<String> {
        Some(parse(text)?.with_port(7).unwrap().to_string())
    }

    #[test]
    fn strict_addresses_are_read() {
        assert_eq!(address("10.1.0.7").as_deref(), Some("10.1.0.7:7"));
        assert_eq!(address("fd71::1").as_deref(), Some("[fd71::1]:7"));
        assert_eq!(address("fe80::1%3").as_deref(), Some("[fe80::1%3]:7"));
        assert_eq!(address("fe80::1%lo").as_deref(), Some("[fe80::1%1]:7"));
    }

    #[test]
    fn anything_else_is_left_to_the_system() {
        for text in ["010.1.0.1", "10.1", "host", "", "1.2.3.4%lo", "[::1]"] {
            assert_eq!(address(text), None, "{text}");
        }
    }

    #[test]
    fn an_unknown_scope_is_an_error() {
        let unknown = ["fe80::1%nosuchif", "fe80::1%", "fe80::1%+3", "fe80::1%3 "];
        for text in unknown.into_iter().chain(["fe80::1%4294967296"]) {
            let refused = parse(text).unwrap().with_port(7);
            assert_eq!(refused, Err(NameError::NoName.into()), "{text}");
        }
    }

    #[test]
    fn only_the_scope_of_a_link_has_a_name() {
        assert_eq!(address("ff02::1%lo").as_deref(), Some("[ff02::1%1]:7"));
        assert_eq!(address("fd71::1%1").as_deref(), Some("[fd71::1%1]:7"));
        for text in ["fd71::1%lo", "::1%lo", "ff05::1%lo", "::ffff:10.1.0.7%lo"] {
            let refused = parse(text).unwrap().with_port(7);
            assert_eq!(refused, Err(NameError::NoName.into()), "{text}");
        }
    }

    #[test]
    fn an_address_has_one_family_or_is_written_as_the_other() {
        let of_family = |text, family| {
            let literal = parse(text).unwrap().of_family(Some(family))?;
            literal.with_port(7).map(|address| address.to_string())
        };
        let refused = Err(NameError::AddressFamily.into());
        assert_eq!(of_family("10.1.0.7", Family::V4), Ok("10.1.0.7:7".into()));
        assert_eq!(of_family("10.1.0.7", Family::V6), refused);
        assert_eq!(of_family("fd71::1", Family::V4), refused);
        // Checked before the scope.
        assert_eq!(of_family("fe80::1%nosuchif", Family::V4), refused);
        let mapped = "::ffff:10.1.0.7";
        assert_eq!(of_family(mapped, Family::V4), Ok("10.1.0.7:7".into()));
        assert_eq!(
            of_family(mapped, Family::V6),
            Ok("[::ffff:10.1.0.7]:7".into())
        );
    }

    #[test]
    fn ports_are_decimal() {
        assert_eq!(port("7471"), Ok(Some(7471)));
        assert_eq!(port("0"), Ok(Some(0)));
        for name in ["http", "3com-tsmux", "7 "] {
            assert_eq!(port(name), Ok(None), "{name}");
        }
        for wrong in ["65536", "70000", "+7", "-1", " 7", ""] {
            assert_eq!(port(wrong), Err(NameError::Service.into()), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn every_address_is_read_back(ip: IpAddr, number: u16) {
            let text = ip.to_string();
            let literal = parse(&text).unwrap();
            prop_assert_eq!(literal.with_port(number), Ok(SocketAddr::new(ip, number)));
            prop_assert_eq!(port(&number.to_string()), Ok(Some(number)));
        }
    }
}
