//! The messages of InfiniBand's connection manager.

use std::time::Duration;

use rdmacm_abi::{Ece, PathRecord, QpType};
use rdmacm_core::Guid;

use crate::address::Address;
use crate::network::MessageKind;

/// A message. `from` and `to` are communication ids; 0 stands for an unknown one.
#[derive(Clone, Debug)]
pub(crate) enum CmMessage {
    Req(Box<Req>),
    Rep(Box<Rep>),
    Rtu { to: u32 },
    Rej(Box<Rej>),
    Mra { to: u32, of: MessageKind },
    Dreq { to: u32, from: u32 },
    Drep { to: u32 },
    SidrReq(Box<SidrReq>),
    SidrRep(Box<SidrRep>),
}

/// A request to connect.
#[derive(Clone, Debug)]
pub(crate) struct Req {
    pub(crate) from: u32,
    pub(crate) guid: Guid,
    pub(crate) service_id: u64,
    pub(crate) qp_number: u32,
    pub(crate) qp_type: QpType,
    pub(crate) psn: u32,
    pub(crate) depths: Depths,
    pub(crate) retry_count: u8,
    pub(crate) ece: Ece,
    pub(crate) path: PathRecord,
    /// The source and destination of a request over IP, `struct cma_hdr`.
    pub(crate) addresses: Option<(Address, Address)>,
    pub(crate) private_data: Vec<u8>,
    /// How long its sender may take to answer.
    pub(crate) response_timeout: Duration,
    /// The timeout of the receiver's queue pair, as 4.096 us * 2^n.
    pub(crate) ack_timeout: u8,
}

/// What both a request and a reply say of a side's queue pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Depths {
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
    pub(crate) flow_control: u8,
    pub(crate) rnr_retry_count: u8,
    pub(crate) srq: u8,
}

/// A reply that accepts a connection.
#[derive(Clone, Debug)]
pub(crate) struct Rep {
    pub(crate) to: u32,
    pub(crate) from: u32,
    pub(crate) guid: Guid,
    pub(crate) qp_number: u32,
    pub(crate) psn: u32,
    pub(crate) depths: Depths,
    pub(crate) ece: Ece,
    pub(crate) private_data: Vec<u8>,
    /// How long its sender's device takes to acknowledge, as 4.096 us * 2^n.
    pub(crate) ack_delay: u8,
}

/// A rejection.
#[derive(Clone, Debug)]
pub(crate) struct Rej {
    pub(crate) to: u32,
    pub(crate) from: u32,
    pub(crate) reason: u8,
    pub(crate) private_data: Vec<u8>,
}

/// A request for a datagram service.
#[derive(Clone, Debug)]
pub(crate) struct SidrReq {
    pub(crate) from: u32,
    pub(crate) service_id: u64,
    pub(crate) path: PathRecord,
    pub(crate) addresses: Option<(Address, Address)>,
    pub(crate) private_data: Vec<u8>,
}

/// The reply to it.
#[derive(Clone, Debug)]
pub(crate) struct SidrRep {
    pub(crate) to: u32,
    pub(crate) status: u8,
    pub(crate) qp_number: u32,
    pub(crate) qkey: u32,
    pub(crate) private_data: Vec<u8>,
}

impl CmMessage {
    pub(crate) fn kind(&self) -> MessageKind {
        match self {
            Self::Req(_) => MessageKind::Request,
            Self::Rep(_) => MessageKind::Reply,
            Self::Rtu { .. } => MessageKind::ReadyToUse,
            Self::Rej(_) => MessageKind::Reject,
            Self::Mra { .. } => MessageKind::Acknowledgment,
            Self::Dreq { .. } => MessageKind::DisconnectRequest,
            Self::Drep { .. } => MessageKind::DisconnectReply,
            Self::SidrReq(_) => MessageKind::ServiceRequest,
            Self::SidrRep(_) => MessageKind::ServiceReply,
        }
    }

    /// A rejection without private data.
    pub(crate) fn reject(to: u32, from: u32, reason: u8) -> Self {
        Self::Rej(Box::new(Rej {
            to,
            from,
            reason,
            private_data: Vec::new(),
        }))
    }
}
