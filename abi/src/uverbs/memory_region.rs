//! Registering memory.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::AccessFlags;

bits! {
    /// `enum ibv_rereg_mr_flags`: what of a memory region changes.
    #[doc(alias = "ibv_rereg_mr_flags")]
    pub struct ReregFlags(u32) in user_space "infiniband/verbs.h" {
        /// The memory and its address.
        CHANGE_TRANSLATION = 0x1 => "IBV_REREG_MR_CHANGE_TRANSLATION",
        /// The protection domain.
        CHANGE_PD = 0x2 => "IBV_REREG_MR_CHANGE_PD",
        /// What may be done to it.
        CHANGE_ACCESS = 0x4 => "IBV_REREG_MR_CHANGE_ACCESS",
    }
}

/// `struct ib_uverbs_reg_mr`: registers memory, which makes a memory region.
///
/// siw wants a key besides: [`siw::RegMr`](super::siw::RegMr).
#[doc(alias = "ib_uverbs_reg_mr")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct RegMr {
    /// Where the kernel puts [`RegMrResponse`]; filled in when the command is written.
    pub response: u64,
    /// The address of the memory. The device reads it, and with write access
    /// writes it, for as long as the region lives: who sends this answers for
    /// that. EFAULT where there is none, ENOMEM beyond `RLIMIT_MEMLOCK`.
    pub start: u64,
    /// Bytes of memory, at least 1.
    pub length: u64,
    /// The address by which requests name the first byte; EINVAL unless it has
    /// the place in its page that `start` has.
    #[doc(alias = "hca_va")]
    pub device_address: u64,
    /// The protection domain.
    #[doc(alias = "pd_handle")]
    pub pd: u32,
    /// What may be done to it; EINVAL if a peer may change it and the device
    /// may not.
    #[doc(alias = "access_flags")]
    pub access: AccessFlags,
}

/// `struct ib_uverbs_reg_mr_resp`.
#[doc(alias = "ib_uverbs_reg_mr_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct RegMrResponse {
    /// The kernel's handle, counted for each context; 0 is a valid one.
    #[doc(alias = "mr_handle")]
    pub handle: u32,
    /// The key by which requests of this side name it.
    pub lkey: u32,
    /// The key by which requests of the peer name it.
    pub rkey: u32,
}

/// `struct ib_uverbs_rereg_mr`: changes a memory region.
///
/// EOPNOTSUPP from siw and from rxe in Linux 6.1. Of later kernels' rxe it
/// changes protection domain and access only.
#[doc(alias = "ib_uverbs_rereg_mr")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ReregMr {
    /// Where the kernel puts [`ReregMrResponse`]; filled in when the command is written.
    pub response: u64,
    /// The memory region.
    #[doc(alias = "mr_handle")]
    pub handle: u32,
    /// Which fields count.
    pub flags: ReregFlags,
    /// The address of the memory, as in [`RegMr::start`].
    pub start: u64,
    /// Bytes of memory.
    pub length: u64,
    /// The address by which requests name the first byte.
    #[doc(alias = "hca_va")]
    pub device_address: u64,
    /// The protection domain.
    #[doc(alias = "pd_handle")]
    pub pd: u32,
    /// What may be done to it.
    #[doc(alias = "access_flags")]
    pub access: AccessFlags,
}

/// `struct ib_uverbs_rereg_mr_resp`.
#[doc(alias = "ib_uverbs_rereg_mr_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ReregMrResponse {
    /// The key by which requests of this side name it.
    pub lkey: u32,
    /// The key by which requests of the peer name it.
    pub rkey: u32,
}

/// `struct ib_uverbs_dereg_mr`: ends a memory region. Requests that name it
/// fail from now on; one in progress may hold the memory until it ends.
#[doc(alias = "ib_uverbs_dereg_mr")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct DeregMr {
    /// The memory region.
    #[doc(alias = "mr_handle")]
    pub handle: u32,
}
