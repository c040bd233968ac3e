//! The elements of send and receive queues.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute_mut, transmute_ref};

use super::super::Sge;
use super::{MAX_INLINE, MAX_SGE};
use crate::Reserved;

numbers! {
    /// `enum siw_opcode`: what a request does.
    #[doc(alias = "siw_opcode")]
    pub struct Opcode(u8) in kernel "rdma/siw-abi.h" {
        /// Writes to the peer's memory.
        WRITE = 0 => "SIW_OP_WRITE",
        /// Reads the peer's memory, into one piece.
        READ = 1 => "SIW_OP_READ",
        /// Reads, and ends the key of the memory that is filled.
        READ_LOCAL_INV = 2 => "SIW_OP_READ_LOCAL_INV",
        /// Sends a message.
        SEND = 3 => "SIW_OP_SEND",
        /// Sends a message and data beside it; no kernel carries it out.
        SEND_WITH_IMM = 4 => "SIW_OP_SEND_WITH_IMM",
        /// Sends a message and ends a key of the peer's.
        SEND_REMOTE_INV = 5 => "SIW_OP_SEND_REMOTE_INV",
        /// Adds to the peer's memory; no kernel carries it out.
        FETCH_AND_ADD = 6 => "SIW_OP_FETCH_AND_ADD",
        /// Compares and swaps; no kernel carries it out.
        COMP_AND_SWAP = 7 => "SIW_OP_COMP_AND_SWAP",
        /// Receives a message.
        RECEIVE = 8 => "SIW_OP_RECEIVE",
        /// The driver's own answer to a read.
        READ_RESPONSE = 9 => "SIW_OP_READ_RESPONSE",
        /// Ends a key; for the kernel only.
        INVAL_STAG = 10 => "SIW_OP_INVAL_STAG",
        /// Registers memory; for the kernel only.
        REG_MR = 11 => "SIW_OP_REG_MR",
    }
}

bits! {
    /// `enum siw_wqe_flags`: whose turn a slot is, and how a request is
    /// carried out.
    #[doc(alias = "siw_wqe_flags")]
    pub struct WqeFlags(u16) in kernel "rdma/siw-abi.h" {
        /// It is the driver's turn. Set last, by a release store; the driver
        /// clears it.
        VALID = 0x1 => "SIW_WQE_VALID",
        /// Its data stands in the request itself.
        INLINE = 0x2 => "SIW_WQE_INLINE",
        /// It completes visibly, however it ends; a failure always does.
        SIGNALLED = 0x4 => "SIW_WQE_SIGNALLED",
        /// It wakes a peer who waits for this flag only.
        SOLICITED = 0x8 => "SIW_WQE_SOLICITED",
        /// Not before the reads ahead of it are done.
        READ_FENCE = 0x10 => "SIW_WQE_READ_FENCE",
        /// A key ended with the message.
        REM_INVAL = 0x20 => "SIW_WQE_REM_INVAL",
        /// The driver is done with it.
        COMPLETED = 0x40 => "SIW_WQE_COMPLETED",
    }
}

/// `struct siw_sqe`: a send request.
#[doc(alias = "siw_sqe")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Sqe {
    /// What its completion carries back.
    pub id: u64,
    /// Whose turn it is, and how.
    pub flags: WqeFlags,
    /// How many of `sges` count; 1 where the data is in line.
    #[doc(alias = "num_sge")]
    pub sge_count: u8,
    /// What it does.
    pub opcode: Opcode,
    /// The key of the peer's memory, or the one that ends.
    pub rkey: u32,
    /// Where the peer's memory begins.
    #[doc(alias = "raddr")]
    pub remote_address: u64,
    /// This side's memory. Of data in line the first says the length, and the
    /// others are [the data](Self::inline_data).
    #[doc(alias = "sge")]
    pub sges: [Sge; MAX_SGE],
}

impl Sqe {
    /// The bytes of data in line.
    #[must_use]
    pub const fn inline_data(&self) -> &[u8; MAX_INLINE] {
        let [_, data @ ..] = &self.sges;
        transmute_ref!(data)
    }

    /// The bytes of data in line, to be filled.
    pub fn inline_data_mut(&mut self) -> &mut [u8; MAX_INLINE] {
        let [_, data @ ..] = &mut self.sges;
        transmute_mut!(data)
    }
}

/// `struct siw_rqe`: a receive request.
#[doc(alias = "siw_rqe")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Rqe {
    /// What its completion carries back.
    pub id: u64,
    /// Whose turn it is.
    pub flags: WqeFlags,
    /// How many of `sges` count.
    #[doc(alias = "num_sge")]
    pub sge_count: u8,
    /// The driver's; it looks at nothing the program says.
    pub opcode: Opcode,
    /// Nothing.
    pub unused: Reserved<4>,
    /// The memory.
    #[doc(alias = "sge")]
    pub sges: [Sge; MAX_SGE],
}
