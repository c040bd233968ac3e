//! What the driver of rxe answers behind the kernel's words.
//! Source: `rdma/rdma_user_rxe.h`.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{CreateCqResponse, CreateQpResponse};
use crate::Reserved;

/// The version of this driver's words, which sysfs and netlink tell.
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
