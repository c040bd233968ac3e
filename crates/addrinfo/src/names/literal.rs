//! Addresses and ports written in figures.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use nix::net::if_::if_nametoindex;

use crate::error::{NameError, Result};

/// An address without a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Literal {
    ip: IpAddr,
    scope_id: u32,
}

impl Literal {
    pub(super) fn with_port(self, port: u16) -> SocketAddr {
        match self.ip {
            IpAddr::V4(ip) => SocketAddrV4::new(ip, port).into(),
            IpAddr::V6(ip) => SocketAddrV6::new(ip, port, 0, self.scope_id).into(),
        }
    }
}

/// A strict dotted quad or an IPv6 address, which may name its scope by an
/// interface's name or number (`fe80::1%eth0`, `fe80::1%2`). `None` for anything
/// else, the C library's other forms of IPv4 addresses included: it reads
/// `010.1.0.1` as octal.
pub(super) fn parse(text: &str) -> Result<Option<Literal>> {
    let (address, scope) = match text.split_once('%') {
        Some((address, scope)) => (address, Some(scope)),
        None => (text, None),
    };
    if let (Ok(ip), None) = (address.parse::<Ipv4Addr>(), scope) {
        return Ok(Some(Literal {
            ip: ip.into(),
            scope_id: 0,
        }));
    }
    let Ok(ip) = address.parse::<Ipv6Addr>() else {
        return Ok(None);
    };
    Ok(Some(Literal {
        ip: ip.into(),
        scope_id: scope.map_or(Ok(0), scope_id)?,
    }))
}

/// The C library looks for an interface of this name before it reads a number.
fn scope_id(scope: &str) -> Result<u32> {
    if_nametoindex(scope)
        .ok()
        .or_else(|| scope.parse().ok())
        .ok_or_else(|| NameError::NoName.into())
}

/// A port in figures; `None` for a service's name. Figures that are no port are
/// an error here: the C library reads 70000 as 4464 and nothing at all as 0.
pub(super) fn port(text: &str) -> Result<Option<u16>> {
    let figures = text.trim_start().trim_start_matches(['+', '-']);
    if figures.bytes().all(|byte| byte.is_ascii_digit()) {
        let port = (figures.len() == text.len()).then(|| text.parse().ok());
        return match port.flatten() {
            Some(port) => Ok(Some(port)),
            None => Err(NameError::Service.into()),
        };
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address(text: &str) -> Option<String> {
        let literal = parse(text).unwrap()?;
        Some(literal.with_port(7).to_string())
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
        assert_eq!(parse("fe80::1%nosuchif"), Err(NameError::NoName.into()));
    }

    #[test]
    fn ports_are_figures() {
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
            let literal = parse(&ip.to_string()).unwrap().unwrap();
            prop_assert_eq!(literal.with_port(number), SocketAddr::new(ip, number));
            prop_assert_eq!(port(&number.to_string()), Ok(Some(number)));
        }
    }
}
