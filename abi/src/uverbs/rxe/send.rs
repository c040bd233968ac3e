//! The elements of send queues.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::super::{ImmediateOrKey, SendFlags, WrOpcode};
use super::{DmaInfo, Target};
use crate::Reserved;

/// `struct rxe_send_wr`: what a send request is to do.
#[doc(alias = "rxe_send_wr")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct SendWr {
    /// What its completion carries back.
    #[doc(alias = "wr_id")]
    pub id: u64,
    /// Zero.
    pub reserved: Reserved<4>,
    /// What it does.
    pub opcode: WrOpcode,
    /// How.
    #[doc(alias = "send_flags")]
    pub flags: SendFlags,
    /// The data that the opcode sends with the message.
    #[doc(alias = "ex")]
    pub immediate_or_key: ImmediateOrKey,
    /// What it does it to.
    #[doc(alias = "wr")]
    pub target: Target,
}

/// `struct rxe_send_wqe`: a send request, its pieces of memory or its data
/// after it.
#[doc(alias = "rxe_send_wqe")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct SendWqe {
    /// What it is to do.
    pub wr: SendWr,
    /// The driver's; 0 at first.
    pub status: u32,
    /// The driver's; 0 at first.
    pub state: u32,
    /// The address in the peer's memory once more; 0 where there is none.
    pub iova: u64,
    /// The driver's; 0 at first.
    pub mask: u32,
    /// The driver's; 0 at first.
    pub first_psn: u32,
    /// The driver's; 0 at first.
    pub last_psn: u32,
    /// The driver's; 0 at first.
    pub ack_length: u32,
    /// The driver's; 0 at first.
    pub ssn: u32,
    /// The driver's; 0 at first.
    pub has_rd_atomic: u32,
    /// This side's memory.
    pub dma: DmaInfo,
}

impl SendWqe {
    /// `wr` with the memory of `dma`; `iova` is the address in the peer's
    /// memory, if it has one.
    #[must_use]
    pub const fn new(wr: SendWr, iova: u64, dma: DmaInfo) -> Self {
        Self {
            wr,
            status: 0,
            state: 0,
            iova,
            mask: 0,
            first_psn: 0,
            last_psn: 0,
            ack_length: 0,
            ssn: 0,
            has_rd_atomic: 0,
            dma,
        }
    }
}
