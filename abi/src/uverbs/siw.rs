//! The private ABI of the driver siw: the data it appends to requests and responses,
//! and the queues in shared memory. Source: `rdma/siw-abi.h`.
//!
//! A queue is a ring of [`Sqe`]s, [`Rqe`]s or [`Cqe`]s; after the ring of completions
//! is a [`CqControl`]. The flag [`VALID`](WqeFlags::VALID) of a slot says who owns it.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{CreateCqResponse, CreateQpResponse, CreateSrqResponse, GetContextResponse, Sge};
use crate::Reserved;

mod completion;
mod memory_region;
mod work_queue;

pub use completion::{CqControl, Cqe, CqeFlags, CqeStatus, NotifyFlags};
pub use memory_region::{MrKey, MrResponse, MrTag, RegMr};
pub use work_queue::{Opcode, Rqe, Sqe, WqeFlags};

/// `SIW_ABI_VERSION`: the version of this driver's ABI, which sysfs and
/// netlink report.
#[doc(alias = "SIW_ABI_VERSION")]
pub const ABI_VERSION: u32 = 1;

/// `SIW_MAX_SGE`: how many pieces of memory a request names at most.
#[doc(alias = "SIW_MAX_SGE")]
pub const MAX_SGE: usize = 6;

/// `SIW_MAX_INLINE`: the limit of inline data of a send request in bytes.
#[doc(alias = "SIW_MAX_INLINE")]
pub const MAX_INLINE: usize = size_of::<Sge>() * (MAX_SGE - 1);

/// `SIW_INVAL_UOBJ_KEY`: the offset of a queue that there is not, and of the one that
/// comes to lie in the 145th page of a context's queues.
#[doc(alias = "SIW_INVAL_UOBJ_KEY")]
pub const NO_QUEUE: u64 = 0x9_0000;

/// `struct siw_uresp_alloc_ctx`: after the answer to
/// [`GetContext`](super::GetContext).
#[doc(alias = "siw_uresp_alloc_ctx")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Context {
    /// The vendor's part number.
    #[doc(alias = "dev_id")]
    pub device_id: u32,
    /// Zero.
    #[doc(alias = "pad")]
    pub padding: Reserved<4>,
}

/// The answer to [`GetContext`](super::GetContext).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ContextResponse {
    /// The kernel's words.
    pub common: GetContextResponse,
    /// The driver's.
    pub context: Context,
}

/// `struct siw_uresp_create_cq`: a completion queue.
#[doc(alias = "siw_uresp_create_cq")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CqQueue {
    /// The driver's number of the queue.
    #[doc(alias = "cq_id")]
    pub id: u32,
    /// How many completions it holds, a power of two.
    #[doc(alias = "num_cqe")]
    pub entries: u32,
    /// The offset for `mmap(2)`.
    #[doc(alias = "cq_key")]
    pub offset: u64,
}

/// The answer to [`CreateCq`](super::CreateCq).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CqResponse {
    /// The kernel's words.
    pub common: CreateCqResponse,
    /// The queue.
    pub queue: CqQueue,
}

/// `struct siw_uresp_create_qp`: the queues of a queue pair.
#[doc(alias = "siw_uresp_create_qp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct QpQueues {
    /// The queue pair's number.
    #[doc(alias = "qp_id")]
    pub id: u32,
    /// Requests the send queue holds, a power of two.
    #[doc(alias = "num_sqe")]
    pub send_entries: u32,
    /// Requests the receive queue holds, a power of two or 0.
    #[doc(alias = "num_rqe")]
    pub receive_entries: u32,
    /// Zero.
    #[doc(alias = "pad")]
    pub padding: Reserved<4>,
    /// The send queue's offset for `mmap(2)`.
    #[doc(alias = "sq_key")]
    pub send_offset: u64,
    /// The receive queue's offset for `mmap(2)`. Of no use if there is none.
    #[doc(alias = "rq_key")]
    pub receive_offset: u64,
}

/// The answer to [`CreateQp`](super::CreateQp).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct QpResponse {
    /// The kernel's words.
    pub common: CreateQpResponse,
    /// The queues.
    pub queues: QpQueues,
}

/// `struct siw_uresp_create_srq`: a shared receive queue.
#[doc(alias = "siw_uresp_create_srq")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct SrqQueue {
    /// Requests it holds, a power of two.
    #[doc(alias = "num_rqe")]
    pub entries: u32,
    /// Zero.
    #[doc(alias = "pad")]
    pub padding: Reserved<4>,
    /// The offset for `mmap(2)`.
    #[doc(alias = "srq_key")]
    pub offset: u64,
}

/// The answer to [`CreateSrq`](super::CreateSrq).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct SrqResponse {
    /// The kernel's words.
    pub common: CreateSrqResponse,
    /// The queue.
    pub queue: SrqQueue,
}
