//! Setting the limit of a shared receive queue.

use zerocopy::{Immutable, IntoBytes, KnownLayout};

use super::super::ModifySrq as CommonModifySrq;

/// `struct rxe_modify_srq_cmd`: the address to which the driver writes how a resized
/// queue can be mapped; none in [`ModifySrq`].
#[doc(alias = "rxe_modify_srq_cmd")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct SrqResize {
    pub(crate) map_info_address: u64,
}

/// [`ModifySrq`](super::super::ModifySrq) for rxe, to set the limit only.
///
/// Resizing would have the driver write to an address in the request that is
/// not the response's, so a value of this type never requests it, and none can
/// be made from bytes:
///
/// ```compile_fail
/// use rdmacm_abi::uverbs::rxe::ModifySrq;
/// use zerocopy::FromBytes;
///
/// let request = ModifySrq::read_from_bytes(&[0xff; 24]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ModifySrq {
    common: CommonModifySrq,
    resize: SrqResize,
}

impl ModifySrq {
    /// A request to set the limit of `handle`: an event reports once when
    /// fewer requests than this are left; 0 is never. EINVAL if the queue does
    /// not hold as many.
    #[must_use]
    pub const fn limit(handle: u32, limit: u32) -> Self {
        Self {
            common: CommonModifySrq::limit(handle, limit),
            resize: SrqResize {
                map_info_address: 0,
            },
        }
    }
}
