//! Registered memory that a request takes and returns.

use rdmacm_verbs::{Buffer, SgList, Sge};

/// Registered memory that a request takes and returns: a [`Buffer`], or a [`Sge`] of one
/// or of [`RemoteAccessRegion`](rdmacm_verbs::RemoteAccessRegion).
pub trait RegisteredBuffer: Into<Sge> + sealed::Sealed {
    /// The buffer that a piece was made from; `None` for other memory.
    #[doc(hidden)]
    fn from_sge(sge: Sge) -> Option<Self>;

    /// The buffer of a request that has one.
    #[doc(hidden)]
    fn from_sg_list(sg_list: SgList) -> Option<Self> {
        sg_list.into_iter().next().and_then(Self::from_sge)
    }
}

impl RegisteredBuffer for Buffer {
    fn from_sge(sge: Sge) -> Option<Self> {
        sge.into_buffer()
    }

    fn from_sg_list(sg_list: SgList) -> Option<Self> {
        sg_list.into_buffer()
    }
}

impl RegisteredBuffer for Sge {
    fn from_sge(sge: Sge) -> Option<Self> {
        Some(sge)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Buffer {}
    impl Sealed for super::Sge {}
}
