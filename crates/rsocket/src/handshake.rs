//! The private data of connect requests and replies.

use zerocopy::byteorder::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::announcement::{ANNOUNCEMENT_SIZE, Announcement};
use crate::byte_order::ByteOrder;
use crate::error::HandshakeError;

/// The version of the protocol.
pub const VERSION: u8 = 1;

/// The size of a handshake, in bytes.
pub const HANDSHAKE_SIZE: usize = 40;

/// How many entries the announcement tables of librdmacm have, and those of this crate's
/// [`Sender`](crate::Sender).
pub const TABLE_ENTRIES: u32 = 2;

/// The most entries of a map table that a handshake can state.
pub const MAX_MAP_ENTRIES: u16 = 127 * 256;

/// The order of the sender's memory is big-endian.
const BIG_ENDIAN: u8 = 1 << 0;
/// The number of map entries is meaningful. Releases of 2012 do not set it.
const HAS_MAP_ENTRIES: u8 = 1 << 1;

/// What each side tells the other one before any message, in the private data of the connect
/// request and of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "rs_conn_data")]
pub struct Handshake {
    /// The order of entries in the sender's table.
    pub byte_order: ByteOrder,
    /// How many messages the sender can receive before it returns credits.
    pub credits: u16,
    /// The entries of the sender's map table. Encoding rounds them down: above 128 to a
    /// multiple of 256, but no lower than 128.
    pub map_entries: u16,
    /// The sender's announcement table. Its map table follows at the next address.
    pub table: RemoteTable,
    /// The first memory that the sender announces, which counts as entry 0 of the
    /// receiver's own table.
    pub announcement: Announcement,
}

/// A table in the peer's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RemoteTable {
    /// The address of entry 0.
    pub address: u64,
    /// The remote key.
    pub key: u32,
    /// The number of entries: 2 or more.
    pub entries: u32,
}

impl RemoteTable {
    /// The address of an entry, by how many announcements were made before it.
    pub(crate) fn entry_address(self, announcements: u64) -> u64 {
        let size = ANNOUNCEMENT_SIZE as u64;
        let index = announcements % u64::from(self.entries.max(1));
        self.address.wrapping_add(index * size)
    }

    /// The address of an entry of the map table, which follows the announcement table.
    #[must_use]
    pub fn map_entry_address(self, index: u16) -> u64 {
        let announcements = u64::from(self.entries) * ANNOUNCEMENT_SIZE as u64;
        let maps = u64::from(index) * crate::MAP_ENTRY_SIZE as u64;
        self.address.wrapping_add(announcements).wrapping_add(maps)
    }

    fn is_addressable(self, map_entries: u16) -> bool {
        let announcements = u64::from(self.entries) * ANNOUNCEMENT_SIZE as u64;
        let maps = u64::from(map_entries) * crate::MAP_ENTRY_SIZE as u64;
        self.address.checked_add(announcements + maps).is_some()
    }
}

/// A handshake as private data.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Layout {
    version: u8,
    flags: u8,
    credits: U16,
    reserved: [u8; 3],
    map_entries: u8,
    table_address: U64,
    table_key: U32,
    table_entries: U32,
    announcement: [u8; ANNOUNCEMENT_SIZE],
}

impl Handshake {
    /// The private data.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HANDSHAKE_SIZE] {
        let order = match self.byte_order {
            ByteOrder::Big => BIG_ENDIAN,
            ByteOrder::Little => 0,
        };
        zerocopy::transmute!(Layout {
            version: VERSION,
            flags: order | HAS_MAP_ENTRIES,
            credits: self.credits.into(),
            reserved: [0; 3],
            map_entries: encode_map_entries(self.map_entries),
            table_address: self.table.address.into(),
            table_key: self.table.key.into(),
            table_entries: self.table.entries.into(),
            announcement: self.announcement.to_bytes(ByteOrder::Big),
        })
    }

    /// The handshake in the peer's private data. More bytes than a handshake has are
    /// ignored: InfiniBand and RoCE pad private data with zeros.
    ///
    /// # Errors
    /// [`HandshakeError`]; the peer must be refused then.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, HandshakeError> {
        let version = bytes.first().copied().unwrap_or(0);
        if version != VERSION {
            return Err(HandshakeError::Version(version));
        }
        let Ok((layout, _)) = Layout::ref_from_prefix(bytes) else {
            return Err(HandshakeError::Length(bytes.len()));
        };
        let handshake = Self::decode(layout);
        if handshake.table.entries < TABLE_ENTRIES {
            return Err(HandshakeError::TableEntries(handshake.table.entries));
        }
        let is_addressable = handshake.table.is_addressable(handshake.map_entries)
            && handshake.announcement.is_addressable();
        is_addressable
            .then_some(handshake)
            .ok_or(HandshakeError::AddressSpace)
    }

    fn decode(layout: &Layout) -> Self {
        let has_map_entries = layout.flags & HAS_MAP_ENTRIES != 0;
        Self {
            byte_order: if layout.flags & BIG_ENDIAN != 0 {
                ByteOrder::Big
            } else {
                ByteOrder::Little
            },
            credits: layout.credits.get(),
            map_entries: if has_map_entries {
                decode_map_entries(layout.map_entries)
            } else {
                0
            },
            table: RemoteTable {
                address: layout.table_address.get(),
                key: layout.table_key.get(),
                entries: layout.table_entries.get(),
            },
            announcement: Announcement::from_bytes(layout.announcement, ByteOrder::Big),
        }
    }
}

/// Up to 128 as it is, otherwise a multiple of 256.
fn encode_map_entries(entries: u16) -> u8 {
    match entries.min(MAX_MAP_ENTRIES) {
        entries @ ..=128 => entries.to_le_bytes()[0],
        entries => 128 | entries.to_be_bytes()[0],
    }
}

fn decode_map_entries(code: u8) -> u16 {
    match code {
        ..=128 => code.into(),
        code => u16::from(code - 128) * 256,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANDSHAKE: Handshake = Handshake {
        byte_order: ByteOrder::Little,
        credits: 384,
        map_entries: 3,
        table: RemoteTable {
            address: 0x7f00_0000_1000,
            key: 0x0102_0304,
            entries: 2,
        },
        announcement: Announcement {
            address: 0x7f00_0000_2000,
            key: 0x0506_0708,
            length: 65536,
        },
    };

    #[test]
    fn a_handshake_has_the_layout_of_librdmacm() {
        let bytes = HANDSHAKE.to_bytes();
        assert_eq!(bytes[..8], [1, 2, 1, 128, 0, 0, 0, 3]);
        assert_eq!(bytes[8..16], [0, 0, 0x7f, 0, 0, 0, 0x10, 0]);
        assert_eq!(bytes[16..24], [1, 2, 3, 4, 0, 0, 0, 2]);
        assert_eq!(bytes[24..32], [0, 0, 0x7f, 0, 0, 0, 0x20, 0]);
        assert_eq!(bytes[32..], [5, 6, 7, 8, 0, 1, 0, 0]);
    }

    #[test]
    fn a_handshake_is_read_as_it_was_written_padding_included() {
        for byte_order in [ByteOrder::Little, ByteOrder::Big] {
            let handshake = Handshake {
                byte_order,
                ..HANDSHAKE
            };
            let mut bytes = handshake.to_bytes().to_vec();
            assert_eq!(Handshake::from_bytes(&bytes), Ok(handshake));
            bytes.resize(56, 0);
            assert_eq!(Handshake::from_bytes(&bytes), Ok(handshake));
        }
    }

    #[test]
    fn what_is_no_handshake_is_refused() {
        let with = |offset: usize, byte: u8| {
            let mut bytes = HANDSHAKE.to_bytes();
            bytes[offset] = byte;
            Handshake::from_bytes(&bytes)
        };
        assert_eq!(with(0, 0), Err(HandshakeError::Version(0)));
        assert_eq!(with(0, 2), Err(HandshakeError::Version(2)));
        assert_eq!(with(23, 1), Err(HandshakeError::TableEntries(1)));
        assert_eq!(Handshake::from_bytes(&[]), Err(HandshakeError::Version(0)));
        let bytes = HANDSHAKE.to_bytes();
        assert_eq!(
            Handshake::from_bytes(&bytes[..39]),
            Err(HandshakeError::Length(39))
        );
        for far in [
            Handshake {
                table: RemoteTable {
                    address: u64::MAX - 31,
                    ..HANDSHAKE.table
                },
                ..HANDSHAKE
            },
            Handshake {
                announcement: Announcement {
                    address: u64::MAX - 1,
                    ..HANDSHAKE.announcement
                },
                ..HANDSHAKE
            },
        ] {
            assert_eq!(
                Handshake::from_bytes(&far.to_bytes()),
                Err(HandshakeError::AddressSpace)
            );
        }
    }

    #[test]
    fn the_number_of_map_entries_is_rounded_as_librdmacm_does() {
        for (entries, stated) in [
            (0, 0),
            (1, 1),
            (128, 128),
            (129, 128),
            (255, 128),
            (256, 256),
            (257, 256),
            (511, 256),
            (512, 512),
            (32512, 32512),
            (33024, 32512),
            (u16::MAX, 32512),
        ] {
            let handshake = Handshake {
                map_entries: entries,
                ..HANDSHAKE
            };
            let read = Handshake::from_bytes(&handshake.to_bytes()).unwrap();
            assert_eq!(read.map_entries, stated, "{entries}");
        }
    }

    #[test]
    fn without_the_flag_there_are_no_map_entries() {
        let mut bytes = HANDSHAKE.to_bytes();
        bytes[1] = 0;
        assert_eq!(Handshake::from_bytes(&bytes).unwrap().map_entries, 0);
    }

    #[test]
    fn entries_of_a_table_follow_each_other_and_wrap() {
        let table = RemoteTable {
            address: 0x1000,
            key: 1,
            entries: 3,
        };
        let addresses = [0, 1, 2, 3].map(|count| table.entry_address(count));
        assert_eq!(addresses, [0x1000, 0x1010, 0x1020, 0x1000]);
        assert_eq!(table.map_entry_address(0), 0x1030);
        assert_eq!(table.map_entry_address(2), 0x1060);
    }
}
