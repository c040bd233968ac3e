//! The segments of iWARP connections.

use crate::address::Address;
use crate::network::MessageKind;

use super::ReadDepths;

/// A segment. `from` and `to` are the numbers of connections on the fabric.
#[derive(Clone, Debug)]
pub(crate) enum IwMessage {
    /// TCP's first segment.
    Syn {
        from: u32,
        destination: Address,
    },
    /// TCP's answer to it, and a number for the other end.
    SynAck {
        to: u32,
        from: u32,
    },
    /// TCP's refusal.
    Reset {
        to: u32,
    },
    Request(Box<MpaRequest>),
    Reply {
        to: u32,
        qp_number: u32,
        depths: ReadDepths,
        private_data: Vec<u8>,
    },
    Reject {
        to: u32,
        private_data: Vec<u8>,
    },
    /// The end of the TCP connection.
    Fin {
        to: u32,
    },
}

/// MPA's request to connect.
#[derive(Clone, Debug)]
pub(crate) struct MpaRequest {
    pub(crate) from: u32,
    /// The number of the other end, which no connection has yet.
    pub(crate) to: u32,
    pub(crate) source: Address,
    pub(crate) destination: Address,
    /// The queue pair of the side that connects. Only the simulation has it on the wire.
    pub(crate) qp_number: u32,
    pub(crate) depths: ReadDepths,
    pub(crate) private_data: Vec<u8>,
}

impl IwMessage {
    pub(crate) fn kind(&self) -> MessageKind {
        match self {
            Self::Syn { .. } | Self::SynAck { .. } | Self::Reset { .. } => {
                MessageKind::TcpHandshake
            }
            Self::Request(_) => MessageKind::Request,
            Self::Reply { .. } => MessageKind::Reply,
            Self::Reject { .. } => MessageKind::Reject,
            Self::Fin { .. } => MessageKind::DisconnectRequest,
        }
    }
}
