//! What every queue and every request in one begins with.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::Reserved;

/// `struct rxe_queue_buf`: the head of a queue, in front of its slots.
///
/// Both sides change it while the other reads: a program looks at the fields
/// where they lie, the indices atomically. Indices are those of slots; the
/// queue is empty where they are the same, and full one slot before.
#[doc(alias = "rxe_queue_buf")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct QueueHeader {
    /// The size of a slot in bytes, as a power of two.
    pub log2_elem_size: u32,
    /// The index of the last slot, one less than a power of two.
    pub index_mask: u32,
    /// Nothing.
    #[doc(alias = "pad_1")]
    pub padding_1: Reserved<120>,
    /// The slot to be filled next.
    pub producer_index: u32,
    /// Nothing.
    #[doc(alias = "pad_2")]
    pub padding_2: Reserved<124>,
    /// The slot to be emptied next.
    pub consumer_index: u32,
    /// Nothing.
    #[doc(alias = "pad_3")]
    pub padding_3: Reserved<124>,
}

/// `struct rxe_dma_info`: the memory of a request, of which the pieces or the
/// bytes themselves follow.
#[doc(alias = "rxe_dma_info")]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct DmaInfo {
    /// Bytes of all of it.
    pub length: u32,
    /// Bytes that are left to do; `length` at first, then the driver's.
    #[doc(alias = "resid")]
    pub remaining: u32,
    /// The piece in progress; the driver's.
    #[doc(alias = "cur_sge")]
    pub current_sge: u32,
    /// Pieces that follow; 0 where bytes do.
    #[doc(alias = "num_sge")]
    pub sge_count: u32,
    /// Bytes done of the piece in progress; the driver's.
    pub sge_offset: u32,
    /// Zero.
    pub reserved: Reserved<4>,
}

impl DmaInfo {
    /// Of `length` bytes in `sge_count` pieces, or in line where that is 0,
    /// with nothing done.
    #[must_use]
    pub const fn new(length: u32, sge_count: u32) -> Self {
        Self {
            length,
            remaining: length,
            current_sge: 0,
            sge_count,
            sge_offset: 0,
            reserved: Reserved::ZERO,
        }
    }
}
