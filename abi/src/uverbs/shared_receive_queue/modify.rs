//! Changing a shared receive queue's attributes.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

bits! {
    /// `enum ib_srq_attr_mask`: which fields of [`ModifySrq`] count.
    #[doc(alias = "ibv_srq_attr_mask")]
    pub struct SrqAttrMask(u32) in user_space "infiniband/verbs.h" {
        /// How many requests it holds.
        MAX_WR = 0x1 => "IBV_SRQ_MAX_WR",
        /// When an event reports that few requests are left.
        LIMIT = 0x2 => "IBV_SRQ_LIMIT",
    }
}

/// `struct ib_uverbs_modify_srq`: changes attributes of a shared receive
/// queue. siw has no [`MAX_WR`](SrqAttrMask::MAX_WR), EOPNOTSUPP; rxe wants a
/// word besides, EINVAL, as [`rxe::ModifySrq`](super::super::rxe::ModifySrq)
/// has it.
#[doc(alias = "ib_uverbs_modify_srq")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ModifySrq {
    /// The shared receive queue.
    #[doc(alias = "srq_handle")]
    pub handle: u32,
    /// Which fields count.
    #[doc(alias = "attr_mask")]
    pub mask: SrqAttrMask,
    /// Receive requests the queue is to hold.
    pub max_wr: u32,
    /// An event reports, once, that fewer requests than this are left; 0 is
    /// never. EINVAL if the queue does not hold as many.
    #[doc(alias = "srq_limit")]
    pub limit: u32,
}

impl ModifySrq {
    /// A request to set the limit of `handle`.
    #[must_use]
    pub const fn limit(handle: u32, limit: u32) -> Self {
        Self {
            handle,
            mask: SrqAttrMask::LIMIT,
            max_wr: 0,
            limit,
        }
    }
}
