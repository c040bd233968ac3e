//! Making and destroying ids.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{PortSpace, QpType, Reserved};

/// `struct rdma_ucm_create_id`: creates an id on this open file.
#[doc(alias = "rdma_ucm_create_id")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CreateId {
    /// What every event of the id carries back. 0 suppresses all events of
    /// the id but the connect requests of a listener.
    pub uid: u64,
    /// Where the kernel puts [`CreateIdResponse`]; filled in when the command is written.
    pub response: u64,
    /// The port space.
    #[doc(alias = "ps")]
    pub port_space: PortSpace,
    /// The queue pair type; the kernel looks at it in [`PortSpace::IB`] only.
    pub qp_type: QpType,
    /// Zero.
    pub reserved: Reserved<5>,
}

impl CreateId {
    /// A request for an id whose events carry `uid`.
    #[must_use]
    pub const fn new(uid: u64, port_space: PortSpace, qp_type: QpType) -> Self {
        Self {
            uid,
            response: 0,
            port_space,
            qp_type,
            reserved: Reserved::ZERO,
        }
    }
}

/// `struct rdma_ucm_create_id_resp`: the kernel's number of a new object.
#[doc(alias = "rdma_ucm_create_id_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CreateIdResponse {
    /// The id, or the multicast id of a join. 0 is a valid one, and numbers
    /// are reused as soon as they are free.
    pub id: u32,
}

/// `struct rdma_ucm_destroy_id`: destroys an id.
///
/// [`LeaveMulticast`](crate::LeaveMulticast) has the same shape.
#[doc(alias = "rdma_ucm_destroy_id")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct DestroyId {
    /// Where the kernel puts [`DestroyIdResponse`]; filled in when the command is written.
    pub response: u64,
    /// The id.
    pub id: u32,
    /// Zero.
    pub reserved: Reserved<4>,
}

impl DestroyId {
    /// A request to destroy `id`.
    #[must_use]
    pub const fn new(id: u32) -> Self {
        Self {
            response: 0,
            id,
            reserved: Reserved::ZERO,
        }
    }
}

/// `struct rdma_ucm_destroy_id_resp`: the answer of `DESTROY_ID` and
/// `LEAVE_MCAST`.
#[doc(alias = "rdma_ucm_destroy_id_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct DestroyIdResponse {
    /// How many events of the object `GET_EVENT` has handed out in its life.
    pub events_reported: u32,
}
