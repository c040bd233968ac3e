//! The doorbell.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bytes of `struct ib_uverbs_send_wr`, which follows a request that
/// contains work requests.
const SEND_WR_SIZE: u32 = 56;

/// `struct ib_uverbs_post_send`: notifies the driver of work in the
/// send queue. rxe and siw take the work from the queue they share with the
/// program, so the request contains none.
///
/// EINVAL from rxe and ENOTCONN from siw before the queue pair is ready to
/// send.
#[doc(alias = "ib_uverbs_post_send")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct PostSend {
    /// Where the kernel puts [`PostSendResponse`]; filled in when the command is written.
    pub response: u64,
    /// The queue pair.
    #[doc(alias = "qp_handle")]
    pub handle: u32,
    /// How many requests follow this one: 0, others are ENOSPC.
    pub wr_count: u32,
    /// How many pieces of memory they name: 0, others are ENOSPC.
    pub sge_count: u32,
    /// Bytes of each of them: 56 or more, even if there are none.
    pub wqe_size: u32,
}

impl PostSend {
    /// A request to look at the send queue of `handle`.
    #[must_use]
    pub const fn doorbell(handle: u32) -> Self {
        Self {
            response: 0,
            handle,
            wr_count: 0,
            sge_count: 0,
            wqe_size: SEND_WR_SIZE,
        }
    }
}

/// `struct ib_uverbs_post_send_resp`.
#[doc(alias = "ib_uverbs_post_send_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct PostSendResponse {
    /// Which of the requests that follow the command failed, from 1; 0 where there are none.
    #[doc(alias = "bad_wr")]
    pub bad_request: u32,
}
