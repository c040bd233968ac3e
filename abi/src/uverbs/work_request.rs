//! What every driver's work requests are made of.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::Be32;

numbers! {
    /// `enum ib_uverbs_wr_opcode`: what a send request does.
    #[doc(alias = "ib_uverbs_wr_opcode", alias = "ibv_wr_opcode")]
    pub struct WrOpcode(u32) in kernel "rdma/ib_user_verbs.h" {
        /// Writes to the peer's memory.
        #[doc(alias = "IBV_WR_RDMA_WRITE")]
        RDMA_WRITE = 0 => "IB_UVERBS_WR_RDMA_WRITE",
        /// Writes, and notifies the peer with 4 bytes of data.
        #[doc(alias = "IBV_WR_RDMA_WRITE_WITH_IMM")]
        RDMA_WRITE_WITH_IMM = 1 => "IB_UVERBS_WR_RDMA_WRITE_WITH_IMM",
        /// Sends a message.
        #[doc(alias = "IBV_WR_SEND")]
        SEND = 2 => "IB_UVERBS_WR_SEND",
        /// Sends a message and 4 bytes of data beside it.
        #[doc(alias = "IBV_WR_SEND_WITH_IMM")]
        SEND_WITH_IMM = 3 => "IB_UVERBS_WR_SEND_WITH_IMM",
        /// Reads the peer's memory.
        #[doc(alias = "IBV_WR_RDMA_READ")]
        RDMA_READ = 4 => "IB_UVERBS_WR_RDMA_READ",
        /// Swaps 8 bytes of the peer's memory if they are what is expected.
        #[doc(alias = "IBV_WR_ATOMIC_CMP_AND_SWP")]
        ATOMIC_CMP_AND_SWP = 5 => "IB_UVERBS_WR_ATOMIC_CMP_AND_SWP",
        /// Adds to 8 bytes of the peer's memory.
        #[doc(alias = "IBV_WR_ATOMIC_FETCH_AND_ADD")]
        ATOMIC_FETCH_AND_ADD = 6 => "IB_UVERBS_WR_ATOMIC_FETCH_AND_ADD",
        /// Ends a key of this side.
        #[doc(alias = "IBV_WR_LOCAL_INV")]
        LOCAL_INV = 7 => "IB_UVERBS_WR_LOCAL_INV",
        /// Binds a memory window.
        #[doc(alias = "IBV_WR_BIND_MW")]
        BIND_MW = 8 => "IB_UVERBS_WR_BIND_MW",
        /// Sends a message and ends a key of the peer's.
        #[doc(alias = "IBV_WR_SEND_WITH_INV")]
        SEND_WITH_INV = 9 => "IB_UVERBS_WR_SEND_WITH_INV",
        /// Sends a TCP stream in segments.
        #[doc(alias = "IBV_WR_TSO")]
        TSO = 10 => "IB_UVERBS_WR_TSO",
        /// Reads, and ends the key of the memory that is filled.
        RDMA_READ_WITH_INV = 11 => "IB_UVERBS_WR_RDMA_READ_WITH_INV",
        /// Compares and swaps some of the bits.
        MASKED_ATOMIC_CMP_AND_SWP = 12 => "IB_UVERBS_WR_MASKED_ATOMIC_CMP_AND_SWP",
        /// Adds to some of the bits.
        MASKED_ATOMIC_FETCH_AND_ADD = 13 => "IB_UVERBS_WR_MASKED_ATOMIC_FETCH_AND_ADD",
        /// Makes what was written visible or persistent; not in Linux 6.1.
        #[doc(alias = "IBV_WR_FLUSH")]
        FLUSH = 14 => "IB_UVERBS_WR_FLUSH" since (7, 2),
        /// Writes 8 bytes at once; not in Linux 6.1.
        #[doc(alias = "IBV_WR_ATOMIC_WRITE")]
        ATOMIC_WRITE = 15 => "IB_UVERBS_WR_ATOMIC_WRITE" since (7, 2),
    }
}

bits! {
    /// `enum ibv_send_flags`: how a send request is carried out.
    #[doc(alias = "ibv_send_flags")]
    pub struct SendFlags(u32) in user_space "infiniband/verbs.h" {
        /// Not before the reads and atomics ahead of it are done.
        FENCE = 0x1 => "IBV_SEND_FENCE",
        /// It completes visibly, however it ends; a failure always does.
        SIGNALED = 0x2 => "IBV_SEND_SIGNALED",
        /// It wakes a peer who waits for this flag only.
        SOLICITED = 0x4 => "IBV_SEND_SOLICITED",
        /// Its data stands in the request itself.
        INLINE = 0x8 => "IBV_SEND_INLINE",
    }
}

/// `struct ib_uverbs_sge`: a piece of registered memory. Drivers have it under
/// names of their own.
#[doc(alias = "ib_uverbs_sge", alias = "ibv_sge")]
#[doc(alias = "rxe_sge", alias = "siw_sge")]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct Sge {
    /// Where it begins.
    #[doc(alias = "addr")]
    pub address: u64,
    /// Bytes it takes.
    pub length: u32,
    /// The key of the region it lies in.
    pub lkey: u32,
}

/// The union `ex` of requests and completions: 4 bytes of data that go with a
/// message, or a key that the message invalidates, by a request's opcode or a
/// completion's flags.
#[doc(alias = "imm_data", alias = "invalidate_rkey")]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(transparent)]
pub struct ImmediateOrKey(u32);

impl ImmediateOrKey {
    /// Neither.
    pub const NONE: Self = Self(0);

    /// Data, as the peer is to get it.
    #[must_use]
    pub const fn from_immediate(data: Be32) -> Self {
        zerocopy::transmute!(data)
    }

    /// A key.
    #[must_use]
    pub const fn from_key(key: u32) -> Self {
        Self(key)
    }

    /// The data, as the peer sent it.
    #[must_use]
    pub const fn immediate(self) -> Be32 {
        zerocopy::transmute!(self)
    }

    /// The key.
    #[must_use]
    pub const fn key(self) -> u32 {
        self.0
    }
}
