//! Global identifiers of ports.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A port's global identifier: 16 bytes in network order, a subnet prefix and
/// an interface id. On RoCE v2 an IPv4 address `a.b.c.d` appears as
/// `::ffff:a.b.c.d`; iWARP shows its MAC address padded with zeros.
/// Source: IBTA Vol 1 §4.1.1.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "ibv_gid")]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// All zeros: no GID.
    pub const UNSPECIFIED: Self = Self([0; 16]);

    /// `::1`, which the kernel treats as this machine.
    pub const LOOPBACK: Self = Self(Ipv6Addr::LOCALHOST.octets());
}

impl fmt::Display for Gid {
    /// Written as the IPv6 address of the same bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv6Addr::from(self.0).fmt(f)
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gid({self})")
    }
}

impl From<[u8; 16]> for Gid {
    fn from(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl From<Ipv6Addr> for Gid {
    fn from(address: Ipv6Addr) -> Self {
        Self(address.octets())
    }
}

impl From<Ipv4Addr> for Gid {
    /// `::ffff:a.b.c.d`, as RoCE v2 has it.
    fn from(address: Ipv4Addr) -> Self {
        address.to_ipv6_mapped().into()
    }
}

impl From<Gid> for [u8; 16] {
    fn from(gid: Gid) -> Self {
        gid.0
    }
}

impl From<Gid> for Ipv6Addr {
    fn from(gid: Gid) -> Self {
        gid.0.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv4_gid_reads_as_one() {
        let gid = Gid::from(Ipv4Addr::new(10, 71, 1, 1));
        assert_eq!(gid.to_string(), "::ffff:10.71.1.1");
    }

    #[test]
    fn the_default_is_no_gid() {
        assert_eq!(Gid::default(), Gid::UNSPECIFIED);
    }

    #[test]
    fn a_gid_is_the_bytes_of_an_ipv6_address() {
        let gid: Gid = "fe80::2:c903:a1:b2c3".parse().unwrap();
        let address = Ipv6Addr::from(gid);
        assert_eq!(address.to_string(), gid.to_string());
        assert_eq!(<[u8; 16]>::from(gid), address.octets());
    }
}
