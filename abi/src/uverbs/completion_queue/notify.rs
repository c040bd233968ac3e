//! Arming a completion queue.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct ib_uverbs_req_notify_cq`: arms a completion queue: its channel
/// reports the next completion, once. It does not report completions that are in the
/// queue already.
///
/// EOPNOTSUPP from siw, whose queues are armed in shared memory:
/// [`siw::CqControl`](super::super::siw::CqControl).
#[doc(alias = "ib_uverbs_req_notify_cq")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ReqNotifyCq {
    /// The completion queue.
    #[doc(alias = "cq_handle")]
    pub handle: u32,
    /// Whether only solicited messages and errors count: 0 or 1.
    pub solicited_only: u32,
}
