//! What a send request does it to: a C union.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute_ref};

use crate::Reserved;

/// The union `wr` of [`SendWr`](super::SendWr). Every view is valid for any
/// bytes; which one counts follows from the opcode and the queue pair's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Target {
    // Words, not bytes: the union is 8-aligned, and so are its views.
    words: [u64; 15],
}

/// A view and what the longest leaves after it.
#[derive(FromBytes, KnownLayout, Immutable)]
#[repr(C)]
struct View<T, const REST: usize> {
    target: T,
    rest: [u64; REST],
}

macro_rules! views {
    ($($(#[doc = $doc:literal])+ $type:ident, $from:ident, $view:ident, $rest:literal;)+) => {$(
        $(#[doc = $doc])+
        #[must_use]
        pub fn $from(target: &$type) -> Self {
            Self::from_bytes(target.as_bytes())
        }

        /// The same, read.
        #[must_use]
        pub const fn $view(&self) -> &$type {
            let view: &View<$type, $rest> = transmute_ref!(&self.words);
            &view.target
        }
    )+};
}

impl Target {
    /// Nothing: the peer of a connection, who receives a message.
    pub const NONE: Self = Self { words: [0; 15] };

    views! {
        /// Of reads and writes.
        RdmaTarget, from_rdma, rdma, 13;
        /// Of atomic operations.
        AtomicTarget, from_atomic, atomic, 11;
        /// Of datagrams.
        DatagramTarget, from_datagram, datagram, 13;
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let mut target = Self::NONE;
        target.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
        target
    }
}

/// The peer's memory that is read or written.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct RdmaTarget {
    /// Where it begins.
    #[doc(alias = "remote_addr")]
    pub remote_address: u64,
    /// The key of the region it lies in.
    pub rkey: u32,
    /// Zero.
    pub reserved: Reserved<4>,
}

/// The 8 bytes of the peer's memory that an atomic operation changes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct AtomicTarget {
    /// Where they begin, a multiple of 8.
    #[doc(alias = "remote_addr")]
    pub remote_address: u64,
    /// What they are compared with, or what is added.
    pub compare_add: u64,
    /// What replaces them if they are what was expected.
    pub swap: u64,
    /// The key of the region they lie in.
    pub rkey: u32,
    /// Zero.
    pub reserved: Reserved<4>,
}

/// Who gets a datagram.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct DatagramTarget {
    /// The queue pair, by its number.
    #[doc(alias = "remote_qpn")]
    pub remote_qp_number: u32,
    /// Its queue key.
    pub remote_qkey: u32,
    /// The index of the partition key; the driver uses the queue pair's own.
    pub pkey_index: u16,
    /// Zero.
    pub reserved: Reserved<2>,
    /// The address handle, by the number in [`Ah`](super::Ah). 0 is none, and
    /// the address would follow.
    #[doc(alias = "ah_num")]
    pub ah_number: u32,
}
