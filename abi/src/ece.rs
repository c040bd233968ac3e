//! Enhanced connection establishment.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct rdma_ucm_ece`: vendor options both sides agree on (IBTA Vol 1
/// §12.6, ECE). All zero means none. Since Linux 5.8.
#[doc(alias = "rdma_ucm_ece")]
#[doc(alias = "ibv_ece")]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct Ece {
    /// Whose options these are.
    pub vendor_id: u32,
    /// The options, in that vendor's meaning.
    #[doc(alias = "attr_mod")]
    pub options: u32,
}
