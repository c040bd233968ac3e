//! Memory that is mapped at an offset.

use crate::byte_order::ByteOrder;

/// The size of an entry of a map table, in bytes.
pub const MAP_ENTRY_SIZE: usize = 24;

/// Memory that the other side may write at an offset, as an entry of a map table. The table
/// lies after the announcement table and has the same key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[doc(alias = "rs_iomap")]
pub struct MapEntry {
    /// The offset by which the other side names the memory.
    pub offset: u64,
    /// The address in the announcing process.
    pub address: u64,
    /// The remote key.
    pub key: u32,
    /// The length in bytes; 0 if the entry is empty.
    pub length: u32,
}

impl MapEntry {
    /// The entry as the owner of the table reads it.
    #[must_use]
    pub fn to_bytes(self, order: ByteOrder) -> [u8; MAP_ENTRY_SIZE] {
        let mut bytes = [0; MAP_ENTRY_SIZE];
        let (offset, rest) = bytes.split_at_mut(8);
        let (address, rest) = rest.split_at_mut(8);
        let (key, length) = rest.split_at_mut(4);
        offset.copy_from_slice(&order.put_u64(self.offset));
        address.copy_from_slice(&order.put_u64(self.address));
        key.copy_from_slice(&order.put_u32(self.key));
        length.copy_from_slice(&order.put_u32(self.length));
        bytes
    }

    /// The entry in these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; MAP_ENTRY_SIZE], order: ByteOrder) -> Self {
        let [o0, o1, o2, o3, o4, o5, o6, o7, rest @ ..] = bytes;
        let [a0, a1, a2, a3, a4, a5, a6, a7, rest @ ..] = rest;
        let [k0, k1, k2, k3, l0, l1, l2, l3] = rest;
        Self {
            offset: order.get_u64([o0, o1, o2, o3, o4, o5, o6, o7]),
            address: order.get_u64([a0, a1, a2, a3, a4, a5, a6, a7]),
            key: order.get_u32([k0, k1, k2, k3]),
            length: order.get_u32([l0, l1, l2, l3]),
        }
    }

    /// The address of an offset, and how many bytes from there belong to this entry; `None`
    /// if the offset is not mapped by it.
    #[must_use]
    pub fn locate(self, offset: u64) -> Option<(u64, u32)> {
        let skipped = u32::try_from(offset.checked_sub(self.offset)?).ok()?;
        let left = self.length.checked_sub(skipped).filter(|left| *left > 0)?;
        let address = self.address.checked_add(skipped.into())?;
        Some((address, left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: MapEntry = MapEntry {
        offset: 1 << 40,
        address: 0x7000_0000_0000,
        key: 9,
        length: 100,
    };

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            assert_eq!(MapEntry::from_bytes(ENTRY.to_bytes(order), order), ENTRY);
        }
    }

    #[test]
    fn an_offset_is_located_within_its_entry_only() {
        assert_eq!(ENTRY.locate(1 << 40), Some((0x7000_0000_0000, 100)));
        assert_eq!(ENTRY.locate((1 << 40) + 99), Some((0x7000_0000_0063, 1)));
        assert_eq!(ENTRY.locate((1 << 40) + 100), None);
        assert_eq!(ENTRY.locate((1 << 40) - 1), None);
        assert_eq!(ENTRY.locate(u64::MAX), None);
        assert_eq!(MapEntry::default().locate(0), None);
        let wrapping = MapEntry {
            address: u64::MAX,
            ..ENTRY
        };
        assert_eq!(wrapping.locate((1 << 40) + 1), None);
    }
}
