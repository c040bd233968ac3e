//! Attributes for queue pairs.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{AccessFlags, AhAttr, PathMtu, QpAttrMask, QpState, Reserved};

/// `struct rdma_ucm_init_qp_attr`: queries the attributes that move the
/// queue pair of an id to a state.
#[doc(alias = "rdma_ucm_init_qp_attr")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct InitQpAttr {
    /// Where the kernel puts [`QpAttr`]; filled in when the command is written.
    pub response: u64,
    /// The id.
    pub id: u32,
    /// The state wanted; beyond [`QpState::ERR`] is EINVAL.
    pub qp_state: QpState,
}

impl InitQpAttr {
    /// A query of the attributes that move the queue pair of `id` to
    /// `qp_state`.
    #[must_use]
    pub const fn new(id: u32, qp_state: QpState) -> Self {
        Self {
            response: 0,
            id,
            qp_state,
        }
    }
}

/// `struct ib_uverbs_qp_attr`: attributes of a queue pair and the mask that
/// names those that are valid.
#[doc(alias = "ib_uverbs_qp_attr", alias = "ibv_qp_attr")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct QpAttr {
    /// Which fields to pass on.
    #[doc(alias = "qp_attr_mask")]
    pub mask: QpAttrMask,
    /// The state.
    pub qp_state: QpState,
    /// The state it is believed to be in.
    #[doc(alias = "cur_qp_state")]
    pub current_qp_state: QpState,
    /// The path's MTU.
    pub path_mtu: PathMtu,
    /// The state of path migration: 0 migrated, 1 rearm, 2 armed.
    #[doc(alias = "path_mig_state")]
    pub path_migration_state: u32,
    /// The queue key.
    pub qkey: u32,
    /// The first packet number to receive, 24 bits.
    pub rq_psn: u32,
    /// The first packet number to send, 24 bits.
    pub sq_psn: u32,
    /// The peer's queue pair number, 24 bits.
    #[doc(alias = "dest_qp_num")]
    pub destination_qp_number: u32,
    /// What the peer may do.
    #[doc(alias = "qp_access_flags")]
    pub access_flags: AccessFlags,
    /// The address of the peer.
    pub ah_attr: AhAttr,
    /// The address of the peer by the alternate path.
    #[doc(alias = "alt_ah_attr")]
    pub alternate_ah_attr: AhAttr,
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
    /// The index of the partition key.
    pub pkey_index: u16,
    /// The index of the partition key on the alternate path.
    #[doc(alias = "alt_pkey_index")]
    pub alternate_pkey_index: u16,
    /// Whether draining raises an event: 0 or 1.
    pub en_sqd_async_notify: u8,
    /// Whether the send queue drains: 0 or 1.
    pub sq_draining: u8,
    /// Reads and atomics outstanding.
    pub max_rd_atomic: u8,
    /// Reads and atomics answered.
    #[doc(alias = "max_dest_rd_atomic")]
    pub max_destination_rd_atomic: u8,
    /// The pause requested of a sender when no receive is posted, 5 bits, IBTA's
    /// encoding; 0 is 655.36 ms.
    pub min_rnr_timer: u8,
    /// The port, from 1.
    #[doc(alias = "port_num")]
    pub port_number: u8,
    /// The ACK timeout, 5 bits: 4.096 µs times two to this power; 0 is for
    /// ever.
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
    /// Zero.
    pub reserved: Reserved<5>,
}
