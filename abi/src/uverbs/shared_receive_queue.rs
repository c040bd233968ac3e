//! Making and destroying shared receive queues.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::Reserved;

mod modify;
mod query;

pub use modify::{ModifySrq, SrqAttrMask};
pub use query::{QuerySrq, QuerySrqResponse};

/// `struct ib_uverbs_create_srq`: makes a shared receive queue.
#[doc(alias = "ib_uverbs_create_srq", alias = "ibv_srq_init_attr")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CreateSrq {
    /// Where the kernel puts [`CreateSrqResponse`]; filled in when the command is written.
    pub response: u64,
    /// What events of the queue carry back.
    pub user_handle: u64,
    /// The protection domain.
    #[doc(alias = "pd_handle")]
    pub pd: u32,
    /// Receive requests the queue is to hold, at least 1.
    pub max_wr: u32,
    /// Pieces of memory a request is to name.
    pub max_sge: u32,
    /// An event reports that fewer requests than this are left; 0 is never.
    #[doc(alias = "srq_limit")]
    pub limit: u32,
}

/// `struct ib_uverbs_create_srq_resp`.
#[doc(alias = "ib_uverbs_create_srq_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CreateSrqResponse {
    /// The kernel's handle, counted for each context; 0 is a valid one.
    #[doc(alias = "srq_handle")]
    pub handle: u32,
    /// Receive requests the queue holds. Some kernels return the requested number
    /// if there is space for more.
    pub max_wr: u32,
    /// Pieces of memory a request names.
    pub max_sge: u32,
    /// The number of an XRC queue; no other kind has one here.
    #[doc(alias = "srqn")]
    pub number: u32,
}

/// `struct ib_uverbs_destroy_srq`: destroys a shared receive queue; EBUSY
/// while a queue pair uses it.
#[doc(alias = "ib_uverbs_destroy_srq")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct DestroySrq {
    /// Where the kernel puts [`DestroySrqResponse`]; filled in when the command is written.
    pub response: u64,
    /// The shared receive queue.
    #[doc(alias = "srq_handle")]
    pub handle: u32,
    /// Zero.
    pub reserved: Reserved<4>,
}

impl DestroySrq {
    /// A request to destroy `handle`.
    #[must_use]
    pub const fn new(handle: u32) -> Self {
        Self {
            response: 0,
            handle,
            reserved: Reserved::ZERO,
        }
    }
}

/// `struct ib_uverbs_destroy_srq_resp`.
#[doc(alias = "ib_uverbs_destroy_srq_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct DestroySrqResponse {
    /// How many of its asynchronous events have been handed out.
    pub events_reported: u32,
}
