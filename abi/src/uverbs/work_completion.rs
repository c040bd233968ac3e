//! Work completions.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::ImmediateOrKey;
use crate::Reserved;

numbers! {
    /// `enum ib_wc_status`: how a request ended.
    #[doc(alias = "ib_wc_status", alias = "ibv_wc_status")]
    pub struct WcStatus(u32) in user_space "infiniband/verbs.h" {
        /// The request succeeded.
        SUCCESS = 0 => "IBV_WC_SUCCESS",
        /// The memory it names is too short, or a message too long.
        LOC_LEN_ERR = 1 => "IBV_WC_LOC_LEN_ERR",
        /// The queue pair does not support the request.
        LOC_QP_OP_ERR = 2 => "IBV_WC_LOC_QP_OP_ERR",
        /// The end-to-end context does not support the request.
        LOC_EEC_OP_ERR = 3 => "IBV_WC_LOC_EEC_OP_ERR",
        /// A key of this side does not fit the memory it names.
        LOC_PROT_ERR = 4 => "IBV_WC_LOC_PROT_ERR",
        /// Flushed: the queue pair was in the error state before the request was carried
        /// out.
        WR_FLUSH_ERR = 5 => "IBV_WC_WR_FLUSH_ERR",
        /// A memory window could not be bound.
        MW_BIND_ERR = 6 => "IBV_WC_MW_BIND_ERR",
        /// The peer's response was invalid.
        BAD_RESP_ERR = 7 => "IBV_WC_BAD_RESP_ERR",
        /// Local memory is not registered for this access.
        LOC_ACCESS_ERR = 8 => "IBV_WC_LOC_ACCESS_ERR",
        /// The peer found the request invalid.
        REM_INV_REQ_ERR = 9 => "IBV_WC_REM_INV_REQ_ERR",
        /// The peer does not allow this access to its memory.
        REM_ACCESS_ERR = 10 => "IBV_WC_REM_ACCESS_ERR",
        /// The peer could not carry it out.
        REM_OP_ERR = 11 => "IBV_WC_REM_OP_ERR",
        /// The peer did not answer, however often it was sent.
        RETRY_EXC_ERR = 12 => "IBV_WC_RETRY_EXC_ERR",
        /// The peer had no receive posted, however often it was sent.
        RNR_RETRY_EXC_ERR = 13 => "IBV_WC_RNR_RETRY_EXC_ERR",
        /// Reliable datagram domains do not match.
        LOC_RDD_VIOL_ERR = 14 => "IBV_WC_LOC_RDD_VIOL_ERR",
        /// The peer refused a reliable datagram read.
        REM_INV_RD_REQ_ERR = 15 => "IBV_WC_REM_INV_RD_REQ_ERR",
        /// The peer aborted it.
        REM_ABORT_ERR = 16 => "IBV_WC_REM_ABORT_ERR",
        /// There is no such end-to-end context.
        INV_EECN_ERR = 17 => "IBV_WC_INV_EECN_ERR",
        /// The end-to-end context is not in a state for it.
        INV_EEC_STATE_ERR = 18 => "IBV_WC_INV_EEC_STATE_ERR",
        /// The device failed.
        FATAL_ERR = 19 => "IBV_WC_FATAL_ERR",
        /// The peer did not answer in time.
        RESP_TIMEOUT_ERR = 20 => "IBV_WC_RESP_TIMEOUT_ERR",
        /// None of these.
        GENERAL_ERR = 21 => "IBV_WC_GENERAL_ERR",
    }

    /// `enum ib_wc_opcode`: what a request was, if it ended well.
    #[doc(alias = "ib_wc_opcode", alias = "ib_uverbs_wc_opcode", alias = "ibv_wc_opcode")]
    pub struct WcOpcode(u32) in user_space "infiniband/verbs.h" {
        /// A message sent.
        SEND = 0 => "IBV_WC_SEND",
        /// A write.
        RDMA_WRITE = 1 => "IBV_WC_RDMA_WRITE",
        /// A read.
        RDMA_READ = 2 => "IBV_WC_RDMA_READ",
        /// A compare and swap.
        COMP_SWAP = 3 => "IBV_WC_COMP_SWAP",
        /// A fetch and add.
        FETCH_ADD = 4 => "IBV_WC_FETCH_ADD",
        /// A memory window bound.
        BIND_MW = 5 => "IBV_WC_BIND_MW",
        /// A key ended.
        LOCAL_INV = 6 => "IBV_WC_LOCAL_INV",
        /// A TCP stream sent in segments.
        TSO = 7 => "IBV_WC_TSO",
        /// A flush; not in Linux 6.1.
        FLUSH = 8 => "IBV_WC_FLUSH" since (7, 2),
        /// A write of 8 bytes at once; not in Linux 6.1.
        ATOMIC_WRITE = 9 => "IBV_WC_ATOMIC_WRITE" since (7, 2),
        /// A message received.
        RECV = 128 => "IBV_WC_RECV",
        /// The 4 bytes of data that a write of the peer brought.
        RECV_RDMA_WITH_IMM = 129 => "IBV_WC_RECV_RDMA_WITH_IMM",
    }
}

bits! {
    /// `enum ib_wc_flags`: what came with a message. These are the kernel's
    /// bits; libibverbs has others.
    #[doc(alias = "ib_wc_flags", alias = "ibv_wc_flags")]
    pub struct WcFlags(u32) {
        /// A global route header stands in the first 40 bytes.
        #[doc(alias = "IBV_WC_GRH")]
        GRH = 0x1 => "IB_WC_GRH",
        /// There are 4 bytes of data.
        #[doc(alias = "IBV_WC_WITH_IMM")]
        WITH_IMM = 0x2 => "IB_WC_WITH_IMM",
        /// A key ended.
        #[doc(alias = "IBV_WC_WITH_INV")]
        WITH_INVALIDATE = 0x4 => "IB_WC_WITH_INVALIDATE",
        /// The checksums of IP and TCP or UDP are right.
        #[doc(alias = "IBV_WC_IP_CSUM_OK")]
        IP_CSUM_OK = 0x8 => "IB_WC_IP_CSUM_OK",
        /// The sender's Ethernet address is known.
        WITH_SMAC = 0x10 => "IB_WC_WITH_SMAC",
        /// The sender's VLAN is known.
        WITH_VLAN = 0x20 => "IB_WC_WITH_VLAN",
        /// How the packet was routed is known.
        WITH_NETWORK_HDR_TYPE = 0x40 => "IB_WC_WITH_NETWORK_HDR_TYPE",
    }
}

/// `struct ib_uverbs_wc`: how a request ended. Completion queues of rxe are
/// made of these.
#[doc(alias = "ib_uverbs_wc", alias = "ibv_wc")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct WorkCompletion {
    /// What the request was posted with.
    #[doc(alias = "wr_id")]
    pub id: u64,
    /// How it ended.
    pub status: WcStatus,
    /// What it was; anything unless it ended well.
    pub opcode: WcOpcode,
    /// The driver's own word on an error.
    #[doc(alias = "vendor_err")]
    pub vendor_error: u32,
    /// Bytes received or transferred. Datagrams count their first 40 bytes.
    pub byte_len: u32,
    /// The data of a message that `flags` names.
    #[doc(alias = "ex")]
    pub immediate_or_key: ImmediateOrKey,
    /// The queue pair, by its number.
    #[doc(alias = "qp_num")]
    pub qp_number: u32,
    /// The sender's queue pair number, of datagrams.
    #[doc(alias = "src_qp")]
    pub source_qp_number: u32,
    /// What came with a message.
    #[doc(alias = "wc_flags")]
    pub flags: WcFlags,
    /// The index of the partition key, of datagrams.
    pub pkey_index: u16,
    /// The sender's LID, host order; 0 on RoCE.
    #[doc(alias = "slid")]
    pub source_lid: u16,
    /// The service level.
    #[doc(alias = "sl")]
    pub service_level: u8,
    /// The low bits of the destination's LID.
    #[doc(alias = "dlid_path_bits")]
    pub destination_path_bits: u8,
    /// The port, from 1.
    #[doc(alias = "port_num")]
    pub port_number: u8,
    /// Zero.
    pub reserved: Reserved<1>,
}
