//! The elements of completion queues, and how one is armed.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute};

use super::Opcode;
use crate::Reserved;

numbers! {
    /// `enum siw_wc_status`: how a request ended. The numbers are not those of
    /// [`WcStatus`](super::super::WcStatus).
    #[doc(alias = "siw_wc_status")]
    pub struct CqeStatus(u16) in kernel "rdma/siw-abi.h" {
        /// The request succeeded.
        SUCCESS = 0 => "SIW_WC_SUCCESS",
        /// The memory it names is too short, or a message too long.
        LOC_LEN_ERR = 1 => "SIW_WC_LOC_LEN_ERR",
        /// A key of this side does not fit the memory it names.
        LOC_PROT_ERR = 2 => "SIW_WC_LOC_PROT_ERR",
        /// The queue pair does not support the request.
        LOC_QP_OP_ERR = 3 => "SIW_WC_LOC_QP_OP_ERR",
        /// Flushed: the queue pair was in the error state before the request was carried
        /// out.
        WR_FLUSH_ERR = 4 => "SIW_WC_WR_FLUSH_ERR",
        /// The peer's response was invalid.
        BAD_RESP_ERR = 5 => "SIW_WC_BAD_RESP_ERR",
        /// Local memory is not registered for this access.
        LOC_ACCESS_ERR = 6 => "SIW_WC_LOC_ACCESS_ERR",
        /// The peer does not allow this access to its memory.
        REM_ACCESS_ERR = 7 => "SIW_WC_REM_ACCESS_ERR",
        /// The peer found the request invalid.
        REM_INV_REQ_ERR = 8 => "SIW_WC_REM_INV_REQ_ERR",
        /// None of these.
        GENERAL_ERR = 9 => "SIW_WC_GENERAL_ERR",
    }
}

bits! {
    /// Some of `enum siw_wqe_flags`, in a byte: whose turn a slot is, and what
    /// came with a message.
    pub struct CqeFlags(u8) {
        /// It is the program's turn. Read by an acquire load; cleared, by a
        /// release store, when the rest has been read.
        VALID = 0x1 => "SIW_WQE_VALID",
        /// A key ended with the message.
        REM_INVAL = 0x20 => "SIW_WQE_REM_INVAL",
    }

    /// `enum siw_notify_flags`: which completions the channel reports. None
    /// is a queue that is not armed.
    #[doc(alias = "siw_notify_flags", alias = "SIW_NOTIFY_NOT")]
    pub struct NotifyFlags(u32) in kernel "rdma/siw-abi.h" {
        /// The next solicited message.
        SOLICITED = 0x1 => "SIW_NOTIFY_SOLICITED",
        /// The next of any kind.
        NEXT_COMPLETION = 0x2 => "SIW_NOTIFY_NEXT_COMPLETION",
        /// Those that are in the queue already; the driver ignores it.
        MISSED_EVENTS = 0x4 => "SIW_NOTIFY_MISSED_EVENTS",
    }
}

/// `struct siw_cqe`: how a request ended.
#[doc(alias = "siw_cqe")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Cqe {
    /// What the request was posted with.
    pub id: u64,
    /// Whose turn it is, and what came with a message.
    pub flags: CqeFlags,
    /// What it was.
    pub opcode: Opcode,
    /// How it ended.
    pub status: CqeStatus,
    /// Bytes received or transferred.
    pub bytes: u32,
    /// What came with a message; [`invalidated_key`](Self::invalidated_key)
    /// reads a key in it.
    #[doc(alias = "imm_data")]
    pub immediate: u64,
    /// The queue pair, by its number.
    #[doc(alias = "qp_id")]
    pub qp_number: u64,
}

impl Cqe {
    /// The key that ended with the message, if the flags say that one did.
    #[doc(alias = "inval_stag")]
    #[must_use]
    pub fn invalidated_key(&self) -> u32 {
        let [key, _]: [u32; 2] = transmute!(self.immediate);
        key
    }
}

/// `struct siw_cq_ctrl`: after the last slot of a completion queue. The
/// program stores to it to arm the queue; the driver clears it when it has
/// notified the channel.
#[doc(alias = "siw_cq_ctrl")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CqControl {
    /// The completions that the channel reports.
    pub flags: NotifyFlags,
    /// Nothing.
    #[doc(alias = "pad")]
    pub padding: Reserved<4>,
}
