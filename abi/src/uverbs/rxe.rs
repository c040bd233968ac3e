//! The private ABI of the driver rxe: the data it appends to responses, and the queues
//! in shared memory. Source: `rdma/rdma_user_rxe.h`.
//!
//! A queue is a [`QueueHeader`] and a ring of elements: [`SendWqe`]s,
//! [`RecvWqe`]s or [`WorkCompletion`](super::WorkCompletion)s, each at the
//! start of a slot whose size the header has. After the element of a request are its
//! scatter/gather entries, [`Sge`](super::Sge)s, or its inline data.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{
    CreateAhResponse, CreateCqResponse, CreateQpResponse, CreateSrqResponse, ResizeCqResponse,
};
use crate::Reserved;

mod modify_srq;
mod queue;
mod receive;
mod send;
mod target;

pub use modify_srq::{ModifySrq, SrqResize};
pub use queue::{DmaInfo, QueueHeader};
pub use receive::RecvWqe;
pub use send::{SendWqe, SendWr};
pub use target::{AtomicTarget, DatagramTarget, RdmaTarget, Target};

/// The version of this driver's ABI, which sysfs and netlink report.
pub const ABI_VERSION: u32 = 2;

/// `struct mminfo`: where a queue can be mapped.
#[doc(alias = "mminfo")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct MapInfo {
    /// The offset for `mmap(2)`, good for one mapping.
    pub offset: u64,
    /// The bytes to map.
    pub size: u32,
    /// Anything.
    #[doc(alias = "pad")]
    pub padding: Reserved<4>,
}

/// The answer to [`CreateCq`](super::CreateCq).
#[doc(alias = "rxe_create_cq_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CqResponse {
    /// The kernel's words.
    pub common: CreateCqResponse,
    /// The queue.
    #[doc(alias = "mi")]
    pub queue: MapInfo,
}

/// `struct rxe_create_qp_resp`: the queues of a queue pair.
#[doc(alias = "rxe_create_qp_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct QpQueues {
    /// The receive queue; untouched where there is none.
    #[doc(alias = "rq_mi")]
    pub receive: MapInfo,
    /// The send queue.
    #[doc(alias = "sq_mi")]
    pub send: MapInfo,
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

/// The answer to [`ResizeCq`](super::ResizeCq).
#[doc(alias = "rxe_resize_cq_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ResizeResponse {
    /// The kernel's words.
    pub common: ResizeCqResponse,
    /// The new queue, with what was in the old one.
    #[doc(alias = "mi")]
    pub queue: MapInfo,
}

/// `struct rxe_create_ah_resp`: an address handle.
#[doc(alias = "rxe_create_ah_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Ah {
    /// The number by which send requests name it, from 1.
    #[doc(alias = "ah_num")]
    pub number: u32,
    /// Untouched.
    pub reserved: Reserved<4>,
}

/// The answer to [`CreateAh`](super::CreateAh).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct AhResponse {
    /// The kernel's words.
    pub common: CreateAhResponse,
    /// The driver's.
    pub ah: Ah,
}

/// `struct rxe_create_srq_resp`: a shared receive queue.
#[doc(alias = "rxe_create_srq_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct SrqQueue {
    /// The queue.
    #[doc(alias = "mi")]
    pub queue: MapInfo,
    /// The driver's number of it.
    #[doc(alias = "srq_num")]
    pub number: u32,
    /// Untouched.
    pub reserved: Reserved<4>,
}

/// The answer to [`CreateSrq`](super::CreateSrq).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct SrqResponse {
    /// The kernel's words.
    pub common: CreateSrqResponse,
    /// The driver's.
    pub srq: SrqQueue,
}
