//! Parameters of a peer.

use rdmacm_abi::{AhAttr, ConnParam, UdParam};

use crate::queue_pair::DepthLimits;

/// The peer's parameters of a reliable connection. Depths are from the view of this
/// side: the peer's initiator depth is this side's responder resources. (With the
/// establishment on iWARP the drivers differ: siw exchanges the two.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "rdma_conn_param")]
pub struct ConnInfo {
    /// The number of the peer's queue pair; 0 on iWARP, which does not transmit it.
    #[doc(alias = "qp_num")]
    pub qp_number: u32,
    /// Whether the peer's queue pair has a shared receive queue.
    pub srq: bool,
    /// How many reads and atomics this side must be able to answer at a time.
    pub responder_resources: u8,
    /// How many reads and atomics this side may have outstanding at a time.
    pub initiator_depth: u8,
    /// Whether the peer's hardware has flow control.
    pub flow_control: bool,
    /// How often a lost packet is retransmitted; in a connect request.
    pub retry_count: u8,
    /// How often this side retries a message for which the peer has posted no receive; 7
    /// is without limit.
    pub rnr_retry_count: u8,
}

impl From<&ConnParam> for ConnInfo {
    fn from(param: &ConnParam) -> Self {
        Self {
            qp_number: param.qp_number,
            srq: param.srq != 0,
            responder_resources: param.responder_resources,
            initiator_depth: param.initiator_depth,
            flow_control: param.flow_control != 0,
            retry_count: param.retry_count,
            rnr_retry_count: param.rnr_retry_count,
        }
    }
}

impl From<&ConnParam> for DepthLimits {
    fn from(param: &ConnParam) -> Self {
        Self {
            responder_resources: param.responder_resources,
            initiator_depth: param.initiator_depth,
        }
    }
}

/// The address parameters of a peer's datagram service, or of a multicast group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "rdma_ud_param")]
pub struct UdInfo {
    /// The number of the queue pair to send to; `0xFFFFFF` for a group.
    #[doc(alias = "qp_num")]
    pub qp_number: u32,
    /// The queue key to send with.
    pub qkey: u32,
    /// The attributes of an address handle. For a group they have the GID
    /// (`grh.destination_gid`) and LID to attach queue pairs to.
    pub ah_attr: AhAttr,
}

impl From<&UdParam> for UdInfo {
    fn from(param: &UdParam) -> Self {
        Self {
            qp_number: param.qp_number,
            qkey: param.qkey,
            ah_attr: param.ah_attr,
        }
    }
}
