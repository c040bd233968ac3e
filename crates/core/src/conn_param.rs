//! Parameters to connect or accept with.

use rdmacm_abi::{ConnParam as Wire, Ece};

use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::queue_pair::{DepthLimits, QueuePair};

mod cm_message;
mod ud;

pub(crate) use cm_message::{CmMessage, MessageFormat};
pub use ud::{RDMA_UDP_QKEY, UdParam};

/// Queue pair numbers have 24 bits.
const MAX_QP_NUMBER: u32 = 0xFF_FFFF;
/// Retry counts have 3 bits.
const MAX_RETRIES: u8 = 7;

/// The parameters with which an id connects or accepts a reliable connection.
///
/// The default is seven retries of either kind and no private data. The depths of reads
/// and atomics default to the limits of the queue pair's device
/// ([`with_queue_pair`](Self::with_queue_pair)), when accepting also to those that the
/// peer requested. Without a queue pair, connecting requests none and accepting grants
/// what the peer requested. [`DEVICE_MAX`](Self::DEVICE_MAX) stands for the default.
/// Source: `rdma_connect(3)`, `rdma_accept(3)`.
///
/// ```
/// use rdmacm_core::ConnParam;
///
/// let param = ConnParam::new()
///     .qp_number(0x11)
///     .responder_resources(4)
///     .private_data(b"hello, version 1")?;
/// # assert_eq!(format!("{param:?}").len() > 1, true);
/// # Ok::<(), rdmacm_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "rdma_conn_param")]
pub struct ConnParam {
    qp_number: u32,
    qkey: u32,
    srq: bool,
    flow_control: bool,
    retry_count: u8,
    rnr_retry_count: u8,
    private_data: Vec<u8>,
    responder_resources: Option<u8>,
    initiator_depth: Option<u8>,
    limits: Option<DepthLimits>,
    ece: Ece,
}

impl ConnParam {
    /// Stands for as many reads and atomics as the queue pair's device supports, when
    /// accepting for no more than the peer requested.
    #[doc(alias = "RDMA_MAX_RESP_RES")]
    #[doc(alias = "RDMA_MAX_INIT_DEPTH")]
    pub const DEVICE_MAX: u8 = 0xFF;

    /// The default parameters.
    #[must_use]
    pub fn new() -> Self {
        Self {
            qp_number: 0,
            qkey: 0,
            srq: false,
            flow_control: false,
            retry_count: MAX_RETRIES,
            rnr_retry_count: MAX_RETRIES,
            private_data: Vec::new(),
            responder_resources: None,
            initiator_depth: None,
            limits: None,
            ece: Ece::default(),
        }
    }

    /// Sets the number of the queue pair, whether it has a shared receive queue, and the
    /// limits of its device.
    #[must_use]
    pub fn with_queue_pair(mut self, queue_pair: &dyn QueuePair) -> Self {
        self.limits = Some(queue_pair.depth_limits());
        self.qp_number(queue_pair.number())
            .srq(queue_pair.has_srq())
    }

    /// The number of the queue pair, 24 bits. rxe accepts any number that no other
    /// connection to the same peer uses; siw looks it up on the device.
    #[must_use]
    #[doc(alias = "qp_num")]
    pub fn qp_number(mut self, number: u32) -> Self {
        self.qp_number = number;
        self
    }

    /// Whether the queue pair has a shared receive queue. Information for the
    /// peer.
    #[must_use]
    pub fn srq(mut self, srq: bool) -> Self {
        self.srq = srq;
        self
    }

    /// Private data for the peer. The limit depends on the transport and the message: 56
    /// bytes of a request (92 with InfiniBand addresses) and 196 of a reply on RoCE and
    /// InfiniBand, 251 of both on iWARP. The call that sends it checks the limit. See
    /// [`Event::private_data`](crate::Event::private_data) for what the peer receives.
    ///
    /// Between InfiniBand addresses the first byte of a request must be 0: the kernel overwrites it.
    /// [`private_data_behind`](Self::private_data_behind) adds it.
    ///
    /// # Errors
    /// [`Error::PrivateDataTooLong`] for more than 251 bytes, the largest limit.
    #[doc(alias = "private_data_len")]
    pub fn private_data(mut self, data: &[u8]) -> Result<Self> {
        cm_message::check_any(data)?;
        self.private_data = data.to_vec();
        Ok(self)
    }

    /// Prepends a header to the private data, such as the connect data of an
    /// [`AddrInfo`](https://docs.rs/rdmacm-addrinfo).
    ///
    /// # Errors
    /// [`Error::PrivateDataTooLong`] if both together are more than 251 bytes.
    #[doc(alias = "ai_connect")]
    pub fn private_data_behind(self, head: &[u8]) -> Result<Self> {
        if head.is_empty() {
            return Ok(self);
        }
        let whole = [head, self.data()].concat();
        self.private_data(&whole)
    }

    /// How many of the peer's reads and atomics this side can answer at a time, or
    /// [`DEVICE_MAX`](Self::DEVICE_MAX).
    #[must_use]
    pub fn responder_resources(mut self, count: u8) -> Self {
        self.responder_resources = said(count);
        self
    }

    /// How many reads and atomics this side has outstanding at a time, or
    /// [`DEVICE_MAX`](Self::DEVICE_MAX).
    #[must_use]
    pub fn initiator_depth(mut self, count: u8) -> Self {
        self.initiator_depth = said(count);
        self
    }

    /// Whether the hardware has flow control. Information for the peer.
    #[must_use]
    pub fn flow_control(mut self, on: bool) -> Self {
        self.flow_control = on;
        self
    }

    /// How often a lost packet is retransmitted, at most 7, which rxe treats as without
    /// limit. The connecting side sets it for both sides; iWARP ignores it.
    #[must_use]
    pub fn retry_count(mut self, count: u8) -> Self {
        self.retry_count = count;
        self
    }

    /// The value set by [`retry_count`](Self::retry_count).
    #[must_use]
    #[doc(alias = "retry_count")]
    pub fn retries(&self) -> u8 {
        self.retry_count
    }

    /// How often the peer retries a message for which this side has posted no receive, at
    /// most 7, which means without limit.
    #[must_use]
    pub fn rnr_retry_count(mut self, count: u8) -> Self {
        self.rnr_retry_count = count;
        self
    }

    /// Options of enhanced connection establishment. Needs Linux 5.8 or newer; older
    /// kernels ignore them.
    #[must_use]
    #[doc(alias = "rdma_set_local_ece")]
    pub fn ece(mut self, ece: Ece) -> Self {
        self.ece = ece;
        self
    }

    pub(crate) fn data(&self) -> &[u8] {
        &self.private_data
    }

    pub(crate) fn options(&self) -> Ece {
        self.ece
    }

    /// The parameters of CONNECT.
    pub(crate) fn for_connect(&self, operation: Operation) -> Result<Wire> {
        let most = self.limits.unwrap_or(NONE);
        self.checked(operation, most)
    }

    /// The parameters of ACCEPT: the depths that the peer requested, unless the caller
    /// set them.
    pub(crate) fn for_accept(
        &self,
        operation: Operation,
        asked: Option<DepthLimits>,
    ) -> Result<Wire> {
        let asked = asked.unwrap_or(NONE);
        let limits = self.limits.unwrap_or(ANY);
        let agreed = DepthLimits {
            responder_resources: asked.responder_resources.min(limits.responder_resources),
            initiator_depth: asked.initiator_depth.min(limits.initiator_depth),
        };
        self.checked(operation, agreed)
    }

    fn checked(&self, operation: Operation, unless_said: DepthLimits) -> Result<Wire> {
        let refuse = |reason| Err(Error::invalid(operation, reason));
        if self.qp_number > MAX_QP_NUMBER {
            return refuse("a queue pair number has 24 bits");
        }
        if self.retry_count > MAX_RETRIES || self.rnr_retry_count > MAX_RETRIES {
            return refuse("a retry count is at most 7");
        }
        let limits = self.limits.unwrap_or(ANY);
        let said = DepthLimits {
            responder_resources: self
                .responder_resources
                .unwrap_or(unless_said.responder_resources),
            initiator_depth: self.initiator_depth.unwrap_or(unless_said.initiator_depth),
        };
        if said.responder_resources > limits.responder_resources {
            return refuse("more responder resources than the queue pair's device has");
        }
        if said.initiator_depth > limits.initiator_depth {
            return refuse("a larger initiator depth than the queue pair's device has");
        }
        let wire = Wire {
            qkey: self.qkey,
            srq: self.srq.into(),
            responder_resources: said.responder_resources,
            initiator_depth: said.initiator_depth,
            flow_control: self.flow_control.into(),
            retry_count: self.retry_count,
            rnr_retry_count: self.rnr_retry_count,
            ..Wire::new(self.qp_number)
        };
        // No field is longer than that of a message, whose length was checked.
        let too_long = |_| Error::private_data(self.private_data.len(), cm_message::MAX);
        wire.with_private_data(&self.private_data).map_err(too_long)
    }
}

fn said(depth: u8) -> Option<u8> {
    Some(depth).filter(|depth| *depth != ConnParam::DEVICE_MAX)
}

const NONE: DepthLimits = DepthLimits {
    responder_resources: 0,
    initiator_depth: 0,
};

const ANY: DepthLimits = DepthLimits {
    responder_resources: u8::MAX,
    initiator_depth: u8::MAX,
};

impl Default for ConnParam {
    fn default() -> Self {
        Self::new()
    }
}

impl From<&Self> for ConnParam {
    fn from(param: &Self) -> Self {
        param.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: DepthLimits = DepthLimits {
        responder_resources: 16,
        initiator_depth: 8,
    };
    const CONNECT: Operation = Operation::Connect;

    fn limited() -> ConnParam {
        ConnParam {
            limits: Some(DEVICE),
            ..ConnParam::new()
        }
    }

    fn depths(wire: &Wire) -> (u8, u8) {
        (wire.responder_resources, wire.initiator_depth)
    }

    #[test]
    fn connecting_requests_the_devices_limits_by_default() {
        let wire = limited().for_connect(CONNECT).unwrap();
        assert_eq!(depths(&wire), (16, 8));
        let param = limited().responder_resources(2).initiator_depth(0);
        assert_eq!(depths(&param.for_connect(CONNECT).unwrap()), (2, 0));
        let wire = ConnParam::new().for_connect(CONNECT).unwrap();
        assert_eq!(depths(&wire), (0, 0), "the device is unknown");
    }

    #[test]
    fn all_bits_mean_the_devices_most() {
        let most = |param: ConnParam| param.responder_resources(0xFF).initiator_depth(0xFF);
        let wire = most(limited()).for_connect(CONNECT).unwrap();
        assert_eq!(depths(&wire), (16, 8));
        let asked = Some(DepthLimits {
            responder_resources: 4,
            initiator_depth: 20,
        });
        let accept = |limits| most(limits).for_accept(Operation::Accept, asked);
        assert_eq!(depths(&accept(limited()).unwrap()), (4, 8));
        let wire = most(ConnParam::new()).for_connect(CONNECT).unwrap();
        assert_eq!(depths(&wire), (0, 0), "the device is unknown");
        assert_eq!(depths(&accept(ConnParam::new()).unwrap()), (4, 20));
    }

    #[test]
    fn accepting_agrees_to_the_lesser() {
        let asked = Some(DepthLimits {
            responder_resources: 4,
            initiator_depth: 20,
        });
        let wire = limited().for_accept(Operation::Accept, asked).unwrap();
        assert_eq!(depths(&wire), (4, 8));
        let bare = ConnParam::new().for_accept(Operation::Accept, asked);
        assert_eq!(depths(&bare.unwrap()), (4, 20));
        let insists = limited().responder_resources(16);
        let wire = insists.for_accept(Operation::Accept, asked).unwrap();
        assert_eq!(depths(&wire), (16, 8));
    }

    #[test]
    fn what_cannot_be_said_is_refused() {
        for param in [
            limited().responder_resources(17),
            limited().initiator_depth(9),
            ConnParam::new().retry_count(8),
            ConnParam::new().rnr_retry_count(8),
            ConnParam::new().qp_number(0x100_0000),
        ] {
            let refused = param.for_connect(CONNECT);
            assert!(
                matches!(refused, Err(Error::InvalidInput { .. })),
                "{param:?}"
            );
        }
        assert!(ConnParam::new().private_data(&[0; 251]).is_ok());
        assert!(ConnParam::new().private_data(&[0; 252]).is_err());
    }

    #[test]
    fn there_are_seven_retries_by_default() {
        let wire = ConnParam::new().for_connect(CONNECT).unwrap();
        assert_eq!(
            (wire.retry_count, wire.rnr_retry_count, wire.valid),
            (7, 7, 1)
        );
    }
}
