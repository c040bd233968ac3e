//! Making and destroying protection domains.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct ib_uverbs_alloc_pd`: makes a protection domain.
#[doc(alias = "ib_uverbs_alloc_pd")]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct AllocPd {
    /// Where the kernel puts [`AllocPdResponse`]; filled in when the command is written.
    pub response: u64,
}

/// `struct ib_uverbs_alloc_pd_resp`.
#[doc(alias = "ib_uverbs_alloc_pd_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct AllocPdResponse {
    /// The kernel's handle, counted for each context; 0 is a valid one.
    #[doc(alias = "pd_handle")]
    pub handle: u32,
}

/// `struct ib_uverbs_dealloc_pd`: destroys a protection domain; EBUSY while
/// something is made in it.
#[doc(alias = "ib_uverbs_dealloc_pd")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct DeallocPd {
    /// The protection domain.
    #[doc(alias = "pd_handle")]
    pub handle: u32,
}
