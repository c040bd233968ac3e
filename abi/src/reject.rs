//! Refusing a connection, and why one was refused.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::conn_param::private_data;
use crate::{MAX_PRIVATE_DATA, PrivateDataTooLong, Reserved};

/// `struct rdma_ucm_reject`: refuses a connect request or a response.
#[doc(alias = "rdma_ucm_reject")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Reject {
    /// The id.
    pub id: u32,
    /// Bytes of `private_data` that are used.
    pub private_data_len: u8,
    /// [`RejectReason::CONSUMER_DEFINED`] or
    /// [`RejectReason::VENDOR_OPTION_NOT_SUPPORTED`], or 0 for the first;
    /// others are EINVAL. Kernels before 5.8 ignore it.
    pub reason: RejectReason,
    /// Zero.
    pub reserved: Reserved<2>,
    /// The private data, zeros after it.
    pub private_data: [u8; MAX_PRIVATE_DATA],
}

impl Reject {
    /// A request to refuse what `id` stands for.
    ///
    /// # Errors
    ///
    /// [`PrivateDataTooLong`] above 255 bytes.
    pub fn new(id: u32, reason: RejectReason, data: &[u8]) -> Result<Self, PrivateDataTooLong> {
        let (private_data, private_data_len) = private_data(data)?;
        Ok(Self {
            id,
            private_data_len,
            reason,
            reserved: Reserved::ZERO,
            private_data,
        })
    }
}

numbers! {
    /// Why InfiniBand or RoCE refused a connection: the status of a REJECTED
    /// event if it is positive (IBTA Vol 1 §12.6.7).
    pub struct RejectReason(u8) {
        /// No queue pair is left.
        NO_QP = 1 => "IB_CM_REJ_NO_QP",
        /// No end-to-end context is left.
        NO_EEC = 2 => "IB_CM_REJ_NO_EEC",
        /// Something else ran out.
        NO_RESOURCES = 3 => "IB_CM_REJ_NO_RESOURCES",
        /// The other side waited too long.
        TIMEOUT = 4 => "IB_CM_REJ_TIMEOUT",
        /// The request is not supported.
        UNSUPPORTED = 5 => "IB_CM_REJ_UNSUPPORTED",
        /// The communication id is unknown.
        INVALID_COMM_ID = 6 => "IB_CM_REJ_INVALID_COMM_ID",
        /// The ids of the communication do not belong together.
        INVALID_COMM_INSTANCE = 7 => "IB_CM_REJ_INVALID_COMM_INSTANCE",
        /// Nobody listens.
        INVALID_SERVICE_ID = 8 => "IB_CM_REJ_INVALID_SERVICE_ID",
        /// The listener wants another transport service.
        INVALID_TRANSPORT_TYPE = 9 => "IB_CM_REJ_INVALID_TRANSPORT_TYPE",
        /// The queue pair number belongs to a connection that still lives.
        STALE_CONN = 10 => "IB_CM_REJ_STALE_CONN",
        /// The reliable datagram channel does not exist.
        RDC_NOT_EXIST = 11 => "IB_CM_REJ_RDC_NOT_EXIST",
        /// The primary GID is wrong.
        INVALID_GID = 12 => "IB_CM_REJ_INVALID_GID",
        /// The primary LID is wrong.
        INVALID_LID = 13 => "IB_CM_REJ_INVALID_LID",
        /// The primary service level is wrong.
        INVALID_SL = 14 => "IB_CM_REJ_INVALID_SL",
        /// The primary traffic class is wrong.
        INVALID_TRAFFIC_CLASS = 15 => "IB_CM_REJ_INVALID_TRAFFIC_CLASS",
        /// The primary hop limit is wrong.
        INVALID_HOP_LIMIT = 16 => "IB_CM_REJ_INVALID_HOP_LIMIT",
        /// The primary packet rate is wrong.
        INVALID_PACKET_RATE = 17 => "IB_CM_REJ_INVALID_PACKET_RATE",
        /// The alternate GID is wrong.
        INVALID_ALT_GID = 18 => "IB_CM_REJ_INVALID_ALT_GID",
        /// The alternate LID is wrong.
        INVALID_ALT_LID = 19 => "IB_CM_REJ_INVALID_ALT_LID",
        /// The alternate service level is wrong.
        INVALID_ALT_SL = 20 => "IB_CM_REJ_INVALID_ALT_SL",
        /// The alternate traffic class is wrong.
        INVALID_ALT_TRAFFIC_CLASS = 21 => "IB_CM_REJ_INVALID_ALT_TRAFFIC_CLASS",
        /// The alternate hop limit is wrong.
        INVALID_ALT_HOP_LIMIT = 22 => "IB_CM_REJ_INVALID_ALT_HOP_LIMIT",
        /// The alternate packet rate is wrong.
        INVALID_ALT_PACKET_RATE = 23 => "IB_CM_REJ_INVALID_ALT_PACKET_RATE",
        /// Ask another port's connection manager.
        PORT_CM_REDIRECT = 24 => "IB_CM_REJ_PORT_CM_REDIRECT",
        /// Connect to another port.
        PORT_REDIRECT = 25 => "IB_CM_REJ_PORT_REDIRECT",
        /// The MTU is not supported.
        INVALID_MTU = 26 => "IB_CM_REJ_INVALID_MTU",
        /// The other side cannot answer as many reads and atomics.
        INSUFFICIENT_RESP_RESOURCES = 27 => "IB_CM_REJ_INSUFFICIENT_RESP_RESOURCES",
        /// The program on the other side refused, or died.
        CONSUMER_DEFINED = 28 => "IB_CM_REJ_CONSUMER_DEFINED",
        /// The retries for a receiver that is not ready are wrong.
        INVALID_RNR_RETRY = 29 => "IB_CM_REJ_INVALID_RNR_RETRY",
        /// The communication id is in use.
        DUPLICATE_LOCAL_COMM_ID = 30 => "IB_CM_REJ_DUPLICATE_LOCAL_COMM_ID",
        /// The version of the management class is not supported.
        INVALID_CLASS_VERSION = 31 => "IB_CM_REJ_INVALID_CLASS_VERSION",
        /// The primary flow label is wrong.
        INVALID_FLOW_LABEL = 32 => "IB_CM_REJ_INVALID_FLOW_LABEL",
        /// The alternate flow label is wrong.
        INVALID_ALT_FLOW_LABEL = 33 => "IB_CM_REJ_INVALID_ALT_FLOW_LABEL",
        /// The vendor options (ECE) are not supported.
        VENDOR_OPTION_NOT_SUPPORTED = 35 => "IB_CM_REJ_VENDOR_OPTION_NOT_SUPPORTED",
    }
}

impl RejectReason {
    /// The reason in the status of a REJECTED event, if it is one: iWARP puts
    /// a negative errno there.
    #[must_use]
    pub fn from_status(status: i32) -> Option<Self> {
        u8::try_from(status)
            .ok()
            .filter(|&code| code != 0)
            .map(Self)
    }

    /// What it means, in a few words, if the code has a meaning.
    #[must_use]
    pub const fn text(self) -> Option<&'static str> {
        Some(match self {
            Self::NO_QP => "no queue pair left",
            Self::NO_EEC => "no end-to-end context left",
            Self::NO_RESOURCES => "no resources left",
            Self::TIMEOUT => "the other side waited too long",
            Self::UNSUPPORTED => "request not supported",
            Self::INVALID_COMM_ID => "unknown communication id",
            Self::INVALID_COMM_INSTANCE => "communication ids do not match",
            Self::INVALID_SERVICE_ID => "no listener",
            Self::INVALID_TRANSPORT_TYPE => "wrong transport service",
            Self::STALE_CONN => "stale connection",
            Self::RDC_NOT_EXIST => "no such reliable datagram channel",
            Self::INVALID_GID => "wrong GID",
            Self::INVALID_LID => "wrong LID",
            Self::INVALID_SL => "wrong service level",
            Self::INVALID_TRAFFIC_CLASS => "wrong traffic class",
            Self::INVALID_HOP_LIMIT => "wrong hop limit",
            Self::INVALID_PACKET_RATE => "wrong packet rate",
            Self::INVALID_ALT_GID => "wrong alternate GID",
            Self::INVALID_ALT_LID => "wrong alternate LID",
            Self::INVALID_ALT_SL => "wrong alternate service level",
            Self::INVALID_ALT_TRAFFIC_CLASS => "wrong alternate traffic class",
            Self::INVALID_ALT_HOP_LIMIT => "wrong alternate hop limit",
            Self::INVALID_ALT_PACKET_RATE => "wrong alternate packet rate",
            Self::PORT_CM_REDIRECT => "redirected to another connection manager",
            Self::PORT_REDIRECT => "redirected to another port",
            Self::INVALID_MTU => "MTU not supported",
            Self::INSUFFICIENT_RESP_RESOURCES => "too few responder resources",
            Self::CONSUMER_DEFINED => "refused by the program or gone",
            Self::INVALID_RNR_RETRY => "wrong RNR retry count",
            Self::DUPLICATE_LOCAL_COMM_ID => "communication id in use",
            Self::INVALID_CLASS_VERSION => "management class version not supported",
            Self::INVALID_FLOW_LABEL => "wrong flow label",
            Self::INVALID_ALT_FLOW_LABEL => "wrong alternate flow label",
            Self::VENDOR_OPTION_NOT_SUPPORTED => "vendor options not supported",
            _ => return None,
        })
    }
}
