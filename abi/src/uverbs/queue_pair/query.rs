//! Reading a queue pair's attributes.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::super::QpDestination;
use crate::{AccessFlags, QpAttrMask, Reserved};

/// `struct ib_uverbs_query_qp`: queries a queue pair's attributes.
#[doc(alias = "ib_uverbs_query_qp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct QueryQp {
    /// Where the kernel puts [`QueryQpResponse`]; filled in when the command is written.
    pub response: u64,
    /// The queue pair.
    #[doc(alias = "qp_handle")]
    pub handle: u32,
    /// Which attributes are wanted. rxe and siw do not look at it.
    #[doc(alias = "attr_mask")]
    pub mask: QpAttrMask,
}

impl QueryQp {
    /// A query of the attributes in `mask` of `handle`.
    #[must_use]
    pub const fn new(handle: u32, mask: QpAttrMask) -> Self {
        Self {
            response: 0,
            handle,
            mask,
        }
    }
}

/// `struct ib_uverbs_query_qp_resp`. What a driver does not fill in is
/// whatever the kernel's memory held before: siw fills in state, MTU, access
/// flags, depths and sizes, and nothing else.
#[doc(alias = "ib_uverbs_query_qp_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct QueryQpResponse {
    /// How packets find the peer.
    #[doc(alias = "dest")]
    pub destination: QpDestination,
    /// How packets find the peer by the alternate path.
    #[doc(alias = "alt_dest")]
    pub alternate_destination: QpDestination,
    /// Send requests the queue holds.
    pub max_send_wr: u32,
    /// Receive requests the queue holds.
    pub max_recv_wr: u32,
    /// Pieces of memory a send request names.
    pub max_send_sge: u32,
    /// Pieces of memory a receive request names.
    pub max_recv_sge: u32,
    /// Bytes of inline data of a send request.
    pub max_inline_data: u32,
    /// The queue key.
    pub qkey: u32,
    /// The next packet number to receive, 24 bits.
    pub rq_psn: u32,
    /// The next packet number to send, 24 bits.
    pub sq_psn: u32,
    /// The peer's queue pair number, 24 bits.
    #[doc(alias = "dest_qp_num")]
    pub destination_qp_number: u32,
    /// What the peer may do.
    #[doc(alias = "qp_access_flags")]
    pub access_flags: AccessFlags,
    /// The index of the partition key.
    pub pkey_index: u16,
    /// The index of the partition key on the alternate path.
    #[doc(alias = "alt_pkey_index")]
    pub alternate_pkey_index: u16,
    /// The state, see [`QpState`](crate::QpState).
    pub qp_state: u8,
    /// The state it is believed to be in.
    #[doc(alias = "cur_qp_state")]
    pub current_qp_state: u8,
    /// The path's MTU, see [`PathMtu`](crate::PathMtu).
    pub path_mtu: u8,
    /// The state of path migration: 0 migrated, 1 rearm, 2 armed.
    #[doc(alias = "path_mig_state")]
    pub path_migration_state: u8,
    /// Whether the send queue drains: 0 or 1.
    pub sq_draining: u8,
    /// Reads and atomics outstanding.
    pub max_rd_atomic: u8,
    /// Reads and atomics answered.
    #[doc(alias = "max_dest_rd_atomic")]
    pub max_destination_rd_atomic: u8,
    /// The pause requested of a sender when no receive is posted.
    pub min_rnr_timer: u8,
    /// The port, from 1.
    #[doc(alias = "port_num")]
    pub port_number: u8,
    /// The ACK timeout.
    pub timeout: u8,
    /// Retries of a lost packet, 0 to 7.
    #[doc(alias = "retry_cnt")]
    pub retry_count: u8,
    /// Retries when the receiver is not ready, 0 to 7; 7 is without limit.
    pub rnr_retry: u8,
    /// The port of the alternate path.
    #[doc(alias = "alt_port_num")]
    pub alternate_port_number: u8,
    /// The ACK timeout of the alternate path.
    #[doc(alias = "alt_timeout")]
    pub alternate_timeout: u8,
    /// Whether every send request completes visibly: 0 or 1.
    #[doc(alias = "sq_sig_all")]
    pub signal_all: u8,
    /// Zero.
    pub reserved: Reserved<5>,
}
