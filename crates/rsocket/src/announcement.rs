//! Announced memory.

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::byte_order::ByteOrder;

/// The size of an entry of an announcement table, in bytes.
pub const ANNOUNCEMENT_SIZE: usize = 16;

/// Memory that the other side may fill, as an entry of an announcement table.
///
/// A side exposes a table, and the other side writes announcements into it, in the byte
/// order of the table's owner, one entry after the other and then from the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[doc(alias = "rs_sge")]
pub struct Announcement {
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
    address: [u8; 8],
    key: [u8; 4],
    length: [u8; 4],
}

impl Announcement {
    /// The entry as the owner of the table reads it.
    #[must_use]
    pub fn to_bytes(self, order: ByteOrder) -> [u8; ANNOUNCEMENT_SIZE] {
        zerocopy::transmute!(Entry {
            address: order.put_u64(self.address),
            key: order.put_u32(self.key),
            length: order.put_u32(self.length),
        })
    }

    /// The entry in these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; ANNOUNCEMENT_SIZE], order: ByteOrder) -> Self {
        let entry: Entry = zerocopy::transmute!(bytes);
        Self {
            address: order.get_u64(entry.address),
            key: order.get_u32(entry.key),
            length: order.get_u32(entry.length),
        }
    }

    /// Whether the memory lies in a 64-bit address space.
    pub(crate) fn is_addressable(self) -> bool {
        self.address.checked_add(self.length.into()).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANNOUNCEMENT: Announcement = Announcement {
        address: 0x0102_0304_0506_0708,
        key: 0x1112_1314,
        length: 0x2122_2324,
    };

    #[test]
    fn an_entry_is_in_the_order_of_the_tables_owner() {
        let big = ANNOUNCEMENT.to_bytes(ByteOrder::Big);
        assert_eq!(
            big,
            [
                1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24
            ]
        );
        let little = ANNOUNCEMENT.to_bytes(ByteOrder::Little);
        assert_eq!(
            little,
            [
                8, 7, 6, 5, 4, 3, 2, 1, 0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21
            ]
        );
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let bytes = ANNOUNCEMENT.to_bytes(order);
            assert_eq!(Announcement::from_bytes(bytes, order), ANNOUNCEMENT);
        }
    }
}
