//! Multicast groups of datagram queue pairs.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::Reserved;

/// `struct ib_uverbs_attach_mcast`: has a queue pair receive what is sent to a
/// group. EINVAL unless it is one of datagrams, EOPNOTSUPP from siw.
#[doc(alias = "ib_uverbs_attach_mcast")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct AttachMulticast {
    /// The group.
    pub gid: [u8; 16],
    /// The queue pair.
    #[doc(alias = "qp_handle")]
    pub handle: u32,
    /// The group's LID, host order; 0 on RoCE.
    #[doc(alias = "mlid")]
    pub lid: u16,
    /// Zero.
    pub reserved: Reserved<2>,
}

impl AttachMulticast {
    /// A request to attach `handle` to the group `gid`, which has no LID.
    #[must_use]
    pub const fn new(handle: u32, gid: [u8; 16]) -> Self {
        Self {
            gid,
            handle,
            lid: 0,
            reserved: Reserved::ZERO,
        }
    }
}

/// `struct ib_uverbs_detach_mcast`: takes a queue pair out of a group.
#[doc(alias = "ib_uverbs_detach_mcast")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct DetachMulticast {
    /// The group.
    pub gid: [u8; 16],
    /// The queue pair.
    #[doc(alias = "qp_handle")]
    pub handle: u32,
    /// The group's LID, as it was attached.
    #[doc(alias = "mlid")]
    pub lid: u16,
    /// Zero.
    pub reserved: Reserved<2>,
}

impl DetachMulticast {
    /// A request to detach `handle` from the group `gid`, which has no LID.
    #[must_use]
    pub const fn new(handle: u32, gid: [u8; 16]) -> Self {
        Self {
            gid,
            handle,
            lid: 0,
            reserved: Reserved::ZERO,
        }
    }
}
