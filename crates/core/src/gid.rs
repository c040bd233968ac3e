//! Global identifiers of ports, nodes and partitions.

use std::fmt;
use std::net::Ipv6Addr;

/// A port's global identifier: 16 bytes in network order, a subnet prefix and
/// an interface id. On RoCE v2 an IPv4 address `a.b.c.d` appears as
/// `::ffff:a.b.c.d`; iWARP shows its MAC address padded with zeros.
/// Source: IBTA Vol 1 §4.1.1.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[doc(alias = "ibv_gid")]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// All zeros: no GID.
    pub const UNSPECIFIED: Self = Self([0; 16]);
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

/// A node's globally unique identifier, host order. Not unique among soft
/// devices: rxe and siw on one network interface share it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Guid(pub u64);

impl fmt::Display for Guid {
    /// Four groups of four digits, as sysfs writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = |shift: u32| self.0 >> shift & 0xffff;
        let (first, second, third, last) = (group(48), group(32), group(16), group(0));
        write!(f, "{first:04x}:{second:04x}:{third:04x}:{last:04x}")
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guid({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_read_as_the_field_writes_them() {
        let mut gid = [0; 16];
        gid[10..].copy_from_slice(&[0xff, 0xff, 10, 71, 1, 1]);
        assert_eq!(Gid(gid).to_string(), "::ffff:10.71.1.1");
        assert_eq!(
            Guid(0x0011_22ff_fe33_4455).to_string(),
            "0011:22ff:fe33:4455"
        );
    }
}
