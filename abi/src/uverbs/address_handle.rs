//! Making and destroying address handles.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{AhAttr, Reserved};

/// `struct ib_uverbs_create_ah`: makes an address handle, which datagrams are
/// sent by. EOPNOTSUPP from siw, which has no datagrams.
#[doc(alias = "ib_uverbs_create_ah")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CreateAh {
    /// Where the kernel puts [`CreateAhResponse`]; filled in when the command is written.
    pub response: u64,
    /// Anything; no event carries it.
    pub user_handle: u64,
    /// The protection domain.
    #[doc(alias = "pd_handle")]
    pub pd: u32,
    /// Zero.
    pub reserved: Reserved<4>,
    /// How packets find the peer. The kernel looks up its Ethernet address.
    pub attr: AhAttr,
}

impl CreateAh {
    /// A request for a handle in `pd` of the peer that `attr` describes.
    #[must_use]
    pub const fn new(pd: u32, attr: AhAttr) -> Self {
        Self {
            response: 0,
            user_handle: 0,
            pd,
            reserved: Reserved::ZERO,
            attr,
        }
    }
}

/// `struct ib_uverbs_create_ah_resp`.
#[doc(alias = "ib_uverbs_create_ah_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CreateAhResponse {
    /// The kernel's handle, counted for each context; 0 is a valid one.
    #[doc(alias = "ah_handle")]
    pub handle: u32,
}

/// `struct ib_uverbs_destroy_ah`: destroys an address handle.
#[doc(alias = "ib_uverbs_destroy_ah")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct DestroyAh {
    /// The address handle.
    #[doc(alias = "ah_handle")]
    pub handle: u32,
}
