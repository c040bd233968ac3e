//! Addresses as people write them.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use super::{CmAddr, IbAddr};
use crate::gid::Gid;

/// Text that is no address, GID or GUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not {0}")]
pub struct ParseAddrError(&'static str);

impl ParseAddrError {
    pub(crate) const GID: Self = Self("a GID, as fe80::2:c903:a1:b2c3");
    pub(crate) const GUID: Self = Self("a GUID, as 0011:22ff:fe33:4455");
    const IB: Self =
        Self("an InfiniBand address, as [fe80::2:c903:a1:b2c3]/service 0x1061d2f/pkey 0xffff");
    const ANY: Self = Self(
        "an address with a port, as 10.1.0.7:7471 or [fd00::7]:7471, nor an InfiniBand address, \
         as [fe80::2:c903:a1:b2c3]/service 0x1061d2f/pkey 0xffff",
    );
}

impl fmt::Display for IbAddr {
    /// `[fe80::1]/service 0x1061d2f/pkey 0xffff`: the GID with a scope (`%2`) if
    /// it has one, the service id if there is one, with a mask (`&0xffff`) if not
    /// all of its bits count, a flow (`/flow 0x1`) if there is one, the
    /// partition. [`FromStr`] reads it back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scope_id {
            0 => write!(f, "[{}]", self.gid)?,
            scope_id => write!(f, "[{}%{scope_id}]", self.gid)?,
        }
        match (self.service_id, self.service_mask) {
            (0, 0) => {}
            (service_id, u64::MAX) => write!(f, "/service {service_id:#x}")?,
            (service_id, mask) => write!(f, "/service {service_id:#x}&{mask:#x}")?,
        }
        if self.flow_info != 0 {
            write!(f, "/flow {:#x}", self.flow_info)?;
        }
        write!(f, "/pkey {:#06x}", self.pkey)
    }
}

impl FromStr for IbAddr {
    type Err = ParseAddrError;

    /// Reads what [`Display`](fmt::Display) writes. Whatever follows the
    /// GID may be left out: without a service there is none, without a mask all
    /// bits of the service id count, without a partition it is
    /// [`DEFAULT_PKEY`](Self::DEFAULT_PKEY).
    fn from_str(text: &str) -> Result<Self, ParseAddrError> {
        read(text).ok_or(ParseAddrError::IB)
    }
}

fn read(text: &str) -> Option<IbAddr> {
    let (host, rest) = text.strip_prefix('[')?.split_once(']')?;
    let (gid, scope_id) = match host.split_once('%') {
        Some((gid, scope)) => (gid, decimal(scope)?),
        None => (host, 0),
    };
    let mut address = IbAddr {
        scope_id,
        ..IbAddr::new(gid.parse().ok()?)
    };
    let mut parts = rest.split('/');
    // Nothing may stand between the bracket and the first part.
    if !parts.next()?.is_empty() {
        return None;
    }
    let mut last = Part::Gid;
    for part in parts {
        let (name, value) = part.split_once(' ')?;
        let part = Part::named(name)?;
        // In this order, each once.
        if part <= last {
            return None;
        }
        last = part;
        part.put(value, &mut address)?;
    }
    Some(address)
}

/// The parts of an address in the order they stand in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Gid,
    Service,
    Flow,
    Partition,
}

impl Part {
    fn named(name: &str) -> Option<Self> {
        match name {
            "service" => Some(Self::Service),
            "flow" => Some(Self::Flow),
            "pkey" => Some(Self::Partition),
            _ => None,
        }
    }

    fn put(self, value: &str, address: &mut IbAddr) -> Option<()> {
        match self {
            Self::Gid => return None,
            Self::Service => {
                (address.service_id, address.service_mask) = match value.split_once('&') {
                    Some((service_id, mask)) => (hexadecimal(service_id)?, hexadecimal(mask)?),
                    None => (hexadecimal(value)?, u64::MAX),
                };
            }
            Self::Flow => address.flow_info = hexadecimal(value)?.try_into().ok()?,
            Self::Partition => address.pkey = hexadecimal(value)?.try_into().ok()?,
        }
        Some(())
    }
}

fn decimal(text: &str) -> Option<u64> {
    digits(text, 10)
}

fn hexadecimal(text: &str) -> Option<u64> {
    digits(text.strip_prefix("0x")?, 16)
}

/// std would read a sign as well.
fn digits(text: &str, radix: u32) -> Option<u64> {
    let all_digits = text.chars().all(|digit| digit.is_digit(radix));
    all_digits
        .then(|| u64::from_str_radix(text, radix).ok())
        .flatten()
}

impl FromStr for CmAddr {
    type Err = ParseAddrError;

    /// Reads an IP address with a port (`10.1.0.7:7471`, `[fd00::7]:7471`,
    /// `[fe80::7%2]:7471` with a scope by number, not by the name of an interface) or an
    /// [`IbAddr`] with any of its parts: a GID alone is rather an IPv6 address whose port was
    /// forgotten.
    fn from_str(text: &str) -> Result<Self, ParseAddrError> {
        let ip = text.parse::<SocketAddr>().map(Self::from).ok();
        let native = || read(text).filter(|_| text.contains('/'));
        ip.or_else(|| native().map(Self::Ib))
            .ok_or(ParseAddrError::ANY)
    }
}

impl TryFrom<&str> for CmAddr {
    type Error = ParseAddrError;

    /// As [`FromStr`].
    fn try_from(text: &str) -> Result<Self, ParseAddrError> {
        text.parse()
    }
}

impl TryFrom<String> for CmAddr {
    type Error = ParseAddrError;

    /// As [`FromStr`].
    fn try_from(text: String) -> Result<Self, ParseAddrError> {
        text.parse()
    }
}

impl TryFrom<&String> for CmAddr {
    type Error = ParseAddrError;

    /// As [`FromStr`].
    fn try_from(text: &String) -> Result<Self, ParseAddrError> {
        text.parse()
    }
}

impl fmt::Display for CmAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(address) => address.fmt(f),
            Self::V6(address) => address.fmt(f),
            Self::Ib(address) => address.fmt(f),
        }
    }
}

/// An address without its port.
pub(super) struct Host(pub(super) CmAddr);

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with_scope = |f: &mut fmt::Formatter<'_>, host: &dyn fmt::Display, scope_id: u64| {
            host.fmt(f)?;
            match scope_id {
                0 => Ok(()),
                scope_id => write!(f, "%{scope_id}"),
            }
        };
        match self.0 {
            CmAddr::V4(address) => address.ip().fmt(f),
            CmAddr::V6(address) => with_scope(f, address.ip(), address.scope_id().into()),
            CmAddr::Ib(IbAddr { gid, scope_id, .. }) => with_scope(f, &gid, scope_id),
        }
    }
}

impl FromStr for Gid {
    type Err = ParseAddrError;

    /// Reads a GID written as an IPv6 address, short, with all its groups or with
    /// an IPv4 address at its end: `fe80::2:c903:a1:b2c3`,
    /// `fe80:0000:0000:0000:0002:c903:00a1:b2c3`, `::ffff:10.1.0.7`.
    fn from_str(text: &str) -> Result<Self, ParseAddrError> {
        let address = text.parse::<std::net::Ipv6Addr>();
        address.map(Self::from).map_err(|_| ParseAddrError::GID)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rdmacm_abi::PortSpace;

    #[test]
    fn each_kind_of_text_is_converted() {
        let text = "10.1.0.7:7471";
        let address = CmAddr::from(([10, 1, 0, 7], 7471));
        assert_eq!(CmAddr::try_from(text), Ok(address));
        assert_eq!(CmAddr::try_from(&text.to_owned()), Ok(address));
        assert_eq!(CmAddr::try_from(text.to_owned()), Ok(address));
        assert_eq!(CmAddr::try_from(String::new()), Err(ParseAddrError::ANY));
    }

    #[test]
    fn gids_are_read_as_people_write_them() {
        let gid: Gid = "fe80::2:c903:a1:b2c3".parse().unwrap();
        for text in [
            "fe80:0:0:0:2:c903:a1:b2c3",
            "fe80:0000:0000:0000:0002:c903:00a1:b2c3",
            "FE80::2:C903:A1:B2C3",
        ] {
            assert_eq!(text.parse(), Ok(gid), "{text}");
        }
        let mapped: Gid = "::ffff:10.1.0.7".parse().unwrap();
        assert_eq!(mapped.to_string(), "::ffff:10.1.0.7");
        for text in ["", "fe80", "10.1.0.7", "fe80::1%2", "fe80::12345", "[::1]"] {
            assert_eq!(text.parse::<Gid>(), Err(ParseAddrError::GID), "{text}");
        }
    }

    #[test]
    fn an_address_is_written_as_it_is_read() {
        for text in [
            "[fe80::1]/pkey 0xffff",
            "[fe80::1]/service 0x1061d2f/pkey 0x8001",
            "[fe80::1%2]/service 0x13f0000&0xffffffffffff0000/pkey 0xffff",
            "[::ffff:10.1.0.7]/service 0x0&0xffff/flow 0x12345/pkey 0x0000",
        ] {
            let address: IbAddr = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
            assert_eq!(text.parse(), Ok(CmAddr::Ib(address)));
        }
    }

    #[test]
    fn what_is_left_out_is_the_usual() {
        let address: IbAddr = "[fe80::1]/service 0x1061d2f".parse().unwrap();
        let gid = "fe80::1".parse().unwrap();
        let expected = IbAddr::new(gid).with_ip_service(PortSpace::TCP, 7471);
        assert_eq!(address, expected);
        assert_eq!("[fe80::1]".parse(), Ok(IbAddr::new(gid)));
    }

    #[test]
    fn a_forgotten_port_makes_no_native_address() {
        for text in ["[::1]", "[fe80::1%2]"] {
            assert_eq!(text.parse::<CmAddr>(), Err(ParseAddrError::ANY), "{text}");
            assert!(text.parse::<IbAddr>().is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "fe80::1",
            "[fe80::1",
            "[fe80::1]:7471",
            "[fe80::1]/",
            "[fe80::1]/service",
            "[fe80::1]/service 7",
            "[fe80::1]/service 0x",
            "[fe80::1]/service 0x+7",
            "[fe80::1]/service 0x1&",
            "[fe80::1]/service 0x10000000000000000",
            "[fe80::1]/pkey 0x10000",
            "[fe80::1]/pkey 0xffff/service 0x7",
            "[fe80::1]/pkey 0xffff/pkey 0xffff",
            "[fe80::1]/port 0x1",
            "[fe80::1%x]/pkey 0xffff",
            "[10.1.0.7]/pkey 0xffff",
        ] {
            assert_eq!(text.parse::<IbAddr>(), Err(ParseAddrError::IB), "{text}");
        }
        let words = "storage-7".parse::<CmAddr>().unwrap_err().to_string();
        assert!(words.contains("10.1.0.7:7471"), "{words}");
    }

    proptest! {
        #[test]
        fn every_address_is_read_back(
            gid: [u8; 16], pkey: u16, flow_info: u32, service_id: u64, service_mask: u64,
            scope_id: u64,
        ) {
            let gid = Gid(gid);
            let address = IbAddr { pkey, flow_info, gid, service_id, service_mask, scope_id };
            prop_assert_eq!(address.to_string().parse(), Ok(address));
            prop_assert_eq!(gid.to_string().parse(), Ok(gid));
        }

        #[test]
        fn arbitrary_text_never_panics(text: String) {
            let _ = text.parse::<CmAddr>();
        }
    }
}
