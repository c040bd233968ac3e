//! The elements of receive queues.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::DmaInfo;
use crate::Reserved;

/// `struct rxe_recv_wqe`: a receive request, its pieces of memory after it.
#[doc(alias = "rxe_recv_wqe")]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct RecvWqe {
    /// What its completion carries back.
    #[doc(alias = "wr_id")]
    pub id: u64,
    /// Zero.
    pub reserved: Reserved<4>,
    /// Zero.
    pub padding: Reserved<4>,
    /// The memory.
    pub dma: DmaInfo,
}
