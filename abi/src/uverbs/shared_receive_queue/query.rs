//! Reading a shared receive queue's attributes.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::Reserved;

/// `struct ib_uverbs_query_srq`: queries a shared receive queue's attributes.
#[doc(alias = "ib_uverbs_query_srq")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct QuerySrq {
    /// Where the kernel puts [`QuerySrqResponse`]; filled in when the command is written.
    pub response: u64,
    /// The shared receive queue.
    #[doc(alias = "srq_handle")]
    pub handle: u32,
    /// Zero.
    pub reserved: Reserved<4>,
}

impl QuerySrq {
    /// A query of the attributes of `handle`.
    #[must_use]
    pub const fn new(handle: u32) -> Self {
        Self {
            response: 0,
            handle,
            reserved: Reserved::ZERO,
        }
    }
}

/// `struct ib_uverbs_query_srq_resp`.
#[doc(alias = "ib_uverbs_query_srq_resp", alias = "ibv_srq_attr")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct QuerySrqResponse {
    /// Receive requests the queue holds.
    pub max_wr: u32,
    /// Pieces of memory a request names.
    pub max_sge: u32,
    /// The limit below which an event is reported; 0 is none.
    #[doc(alias = "srq_limit")]
    pub limit: u32,
    /// Zero.
    pub reserved: Reserved<4>,
}
