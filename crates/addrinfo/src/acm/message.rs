//! The messages of ibacm: a header and up to eight entries, with numbers in host order
//! and addresses and path records in network order.
//! Source: rdma-core's `librdmacm/acm.h`.

use zerocopy::native_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The only version.
pub(super) const VERSION: u8 = 1;
/// Asks for a path.
pub(super) const RESOLVE: u8 = 1;
/// Set in the operation of some replies.
pub(super) const ACK: u8 = 0x80;
/// The most entries of a message.
pub(super) const MOST_ENTRIES: usize = 8;
/// The bytes of the largest message.
pub(super) const LONGEST: usize = size_of::<Header>() + MOST_ENTRIES * size_of::<Entry>();

/// An entry about the source.
pub(super) const SOURCE: u32 = 1;
/// An entry about the destination.
pub(super) const DESTINATION: u32 = 1 << 1;
/// Only what ibacm has cached is asked for.
pub(super) const NO_DELAY: u32 = 1 << 30;

/// Kinds of entries.
pub(super) const IPV4: u16 = 2;
pub(super) const IPV6: u16 = 3;
pub(super) const PATH: u16 = 0x10;

/// `struct acm_hdr`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub(super) struct Header {
    pub(super) version: u8,
    pub(super) operation: u8,
    /// 0, or the error.
    pub(super) status: u8,
    /// Used by the daemon only.
    pub(super) scratch: [u8; 3],
    /// The length of the whole message, in bytes.
    pub(super) length: U16,
    /// The transaction of a request, repeated in its reply.
    pub(super) transaction: U64,
}

/// `struct acm_ep_addr_data`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub(super) struct Entry {
    /// Of an entry of kind [`PATH`] in a reply, the path's.
    pub(super) flags: U32,
    pub(super) kind: U16,
    pub(super) reserved: U16,
    /// 4 or 16 bytes of an address, or a path record.
    pub(super) info: [u8; 64],
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn the_layout_is_cs() {
        assert_eq!(size_of::<Header>(), 16);
        assert_eq!(offset_of!(Header, version), 0);
        assert_eq!(offset_of!(Header, operation), 1);
        assert_eq!(offset_of!(Header, status), 2);
        assert_eq!(offset_of!(Header, scratch), 3);
        assert_eq!(offset_of!(Header, length), 6);
        assert_eq!(offset_of!(Header, transaction), 8);
        assert_eq!(size_of::<Entry>(), 72);
        assert_eq!(offset_of!(Entry, flags), 0);
        assert_eq!(offset_of!(Entry, kind), 4);
        assert_eq!(offset_of!(Entry, reserved), 6);
        assert_eq!(offset_of!(Entry, info), 8);
        assert_eq!(LONGEST, 592);
        assert_eq!(size_of::<rdmacm_abi::PathRecord>(), 64);
    }
}
