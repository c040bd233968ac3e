//! Making and destroying queue pairs.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{QpType, Reserved};

mod modify;
mod query;

pub use modify::ModifyQp;
pub use query::{QueryQp, QueryQpResponse};

/// `struct ib_uverbs_create_qp`: makes a queue pair.
#[doc(alias = "ib_uverbs_create_qp", alias = "ibv_qp_init_attr")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CreateQp {
    /// Where the kernel puts [`CreateQpResponse`]; filled in when the command is written.
    pub response: u64,
    /// What events of the queue pair carry back.
    pub user_handle: u64,
    /// The protection domain.
    #[doc(alias = "pd_handle")]
    pub pd: u32,
    /// The completion queue for what it sends.
    #[doc(alias = "send_cq_handle")]
    pub send_cq: u32,
    /// The completion queue for what it receives.
    #[doc(alias = "recv_cq_handle")]
    pub recv_cq: u32,
    /// The shared receive queue, if `is_srq`.
    #[doc(alias = "srq_handle")]
    pub srq: u32,
    /// Send requests the queue is to hold.
    pub max_send_wr: u32,
    /// Receive requests the queue is to hold.
    pub max_recv_wr: u32,
    /// Pieces of memory a send request is to name.
    pub max_send_sge: u32,
    /// Pieces of memory a receive request is to name.
    pub max_recv_sge: u32,
    /// Bytes a send request is to carry in line.
    pub max_inline_data: u32,
    /// Whether every send request completes visibly: 0 or 1.
    #[doc(alias = "sq_sig_all")]
    pub signal_all: u8,
    /// The transport service.
    pub qp_type: QpType,
    /// Whether it receives from a shared receive queue: 0 or 1.
    pub is_srq: u8,
    /// Zero.
    pub reserved: Reserved<1>,
}

/// `struct ib_uverbs_create_qp_resp`.
#[doc(alias = "ib_uverbs_create_qp_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CreateQpResponse {
    /// The kernel's handle, counted for each context; 0 is a valid one.
    #[doc(alias = "qp_handle")]
    pub handle: u32,
    /// The number peers know it by, 24 bits.
    #[doc(alias = "qpn")]
    pub number: u32,
    /// Send requests the queue holds. Some kernels return the requested number
    /// if there is space for more.
    pub max_send_wr: u32,
    /// Receive requests the queue holds.
    pub max_recv_wr: u32,
    /// Pieces of memory a send request names.
    pub max_send_sge: u32,
    /// Pieces of memory a receive request names.
    pub max_recv_sge: u32,
    /// Bytes of inline data of a send request.
    pub max_inline_data: u32,
    /// Zero.
    pub reserved: Reserved<4>,
}

/// `struct ib_uverbs_destroy_qp`: destroys a queue pair.
#[doc(alias = "ib_uverbs_destroy_qp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct DestroyQp {
    /// Where the kernel puts [`DestroyQpResponse`]; filled in when the command is written.
    pub response: u64,
    /// The queue pair.
    #[doc(alias = "qp_handle")]
    pub handle: u32,
    /// Zero.
    pub reserved: Reserved<4>,
}

impl DestroyQp {
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

/// `struct ib_uverbs_destroy_qp_resp`.
#[doc(alias = "ib_uverbs_destroy_qp_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct DestroyQpResponse {
    /// How many of its asynchronous events have been handed out.
    pub events_reported: u32,
}
