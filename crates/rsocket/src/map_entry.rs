//! Memory that is mapped at an offset.

use zerocopy::{FromBytes, Immutable, IntoBytes};

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

/// An entry as it lies in memory.
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Entry {
    offset: [u8; 8],
    address: [u8; 8],
    key: [u8; 4],
    length: [u8; 4],
}

impl MapEntry {
    /// The entry as the owner of the table reads it.
    #[must_use]
    pub fn to_bytes(self, order: ByteOrder) -> [u8; MAP_ENTRY_SIZE] {
        zerocopy::transmute!(Entry {
            offset: order.put_u64(self.offset),
            address: order.put_u64(self.address),
            key: order.put_u32(self.key),
            length: order.put_u32(self.length),
        })
    }

    /// The entry in these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; MAP_ENTRY_SIZE], order: ByteOrder) -> Self {
        let entry: Entry = zerocopy::transmute!(bytes);
        Self {
            offset: order.get_u64(entry.offset),
            address: order.get_u64(entry.address),
            key: order.get_u32(entry.key),
            length: order.get_u32(entry.length),
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
