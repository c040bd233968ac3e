//! Announced memory.

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

impl Announcement {
    /// The entry as the owner of the table reads it.
    #[must_use]
    pub fn to_bytes(self, order: ByteOrder) -> [u8; ANNOUNCEMENT_SIZE] {
        let mut bytes = [0; ANNOUNCEMENT_SIZE];
        let (address, rest) = bytes.split_at_mut(8);
        let (key, length) = rest.split_at_mut(4);
        address.copy_from_slice(&order.put_u64(self.address));
        key.copy_from_slice(&order.put_u32(self.key));
        length.copy_from_slice(&order.put_u32(self.length));
        bytes
    }

    /// The entry in these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; ANNOUNCEMENT_SIZE], order: ByteOrder) -> Self {
        let [
            a0,
            a1,
            a2,
            a3,
            a4,
            a5,
            a6,
            a7,
            k0,
            k1,
            k2,
            k3,
            l0,
            l1,
            l2,
            l3,
        ] = bytes;
        Self {
            address: order.get_u64([a0, a1, a2, a3, a4, a5, a6, a7]),
            key: order.get_u32([k0, k1, k2, k3]),
            length: order.get_u32([l0, l1, l2, l3]),
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
