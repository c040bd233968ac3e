//! Globally unique identifiers of nodes.

use std::fmt;

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
    fn a_guid_reads_as_sysfs_writes_it() {
        let guid = Guid(0x0011_22ff_fe33_4455);
        assert_eq!(guid.to_string(), "0011:22ff:fe33:4455");
    }
}
