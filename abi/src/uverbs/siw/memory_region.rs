//! Registering memory.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::super::{RegMr as CommonRegMr, RegMrResponse};
use crate::Reserved;

/// `struct siw_ureq_reg_mr`: the driver's parameters of a memory region.
#[doc(alias = "siw_ureq_reg_mr")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct MrKey {
    /// The low byte of the region's keys, which must be unpredictable.
    #[doc(alias = "stag_key")]
    pub key: u8,
    /// Zero.
    pub reserved: Reserved<3>,
    /// Zero.
    #[doc(alias = "pad")]
    pub padding: Reserved<4>,
}

impl MrKey {
    /// `key` as the low byte.
    #[must_use]
    pub const fn new(key: u8) -> Self {
        Self {
            key,
            reserved: Reserved::ZERO,
            padding: Reserved::ZERO,
        }
    }
}

/// [`RegMr`](super::super::RegMr) as siw wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct RegMr {
    /// The kernel's words.
    pub common: CommonRegMr,
    /// The driver's.
    pub key: MrKey,
}

/// `struct siw_uresp_reg_mr`: the key of a memory region.
#[doc(alias = "siw_uresp_reg_mr")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct MrTag {
    /// The key, for both sides.
    pub stag: u32,
    /// Zero.
    #[doc(alias = "pad")]
    pub padding: Reserved<4>,
}

/// The answer to [`RegMr`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct MrResponse {
    /// The kernel's words.
    pub common: RegMrResponse,
    /// The driver's, which follow at once.
    pub tag: MrTag,
}
