//! What the kernel reports about ids.

use std::fmt;
use std::sync::Arc;

use rdmacm_abi::{Ece, EventNumber, EventResponse, QpType};

use crate::id::{CmId, IdHandle, IdState};
use crate::token::Token;

mod failure;
mod info;

pub use failure::EventFailure;
pub use info::{ConnInfo, UdInfo};

/// One event of a channel, owned: it points into nothing, keeps neither its id
/// nor its channel alive, and needs no acknowledgement.
///
/// A connect request owns the child id it brings: taken with
/// [`into_child`](Self::into_child) it is the caller's, dropped with the event
/// it is destroyed, which tells the peer that it was rejected.
#[derive(Debug)]
#[doc(alias = "rdma_cm_event")]
#[doc(alias = "rdma_ack_cm_event")]
pub struct Event {
    id: IdHandle,
    child: Option<CmId>,
    group: Option<Token>,
    qp_type: QpType,
    answer: EventResponse,
}

impl Event {
    pub(crate) fn new(owner: &Arc<IdState>, answer: &EventResponse) -> Self {
        Self {
            id: IdHandle::to(owner),
            child: None,
            group: None,
            qp_type: owner.qp_type(),
            answer: *answer,
        }
    }

    pub(crate) fn with_child(self, child: CmId) -> Self {
        Self {
            child: Some(child),
            ..self
        }
    }

    pub(crate) fn of_group(self, group: Token) -> Self {
        Self {
            group: Some(group),
            ..self
        }
    }

    pub(crate) fn group(&self) -> Option<Token> {
        self.group
    }

    /// The id the event concerns; for a connect request the listener.
    #[must_use]
    #[doc(alias = "listen_id")]
    pub fn id(&self) -> &IdHandle {
        &self.id
    }

    /// What happened.
    #[must_use]
    pub fn kind(&self) -> EventKind {
        self.answer.event.into()
    }

    /// The kernel's status: 0, a negative error number, or for
    /// [`Rejected`](EventKind::Rejected) and, on unreliable datagram ids,
    /// [`Unreachable`](EventKind::Unreachable) the positive code of the
    /// connection manager's protocol.
    #[must_use]
    pub fn status(&self) -> i32 {
        self.answer.status()
    }

    /// The failure this event tells of; `None` where it tells of progress.
    #[must_use]
    pub fn failure(&self) -> Option<EventFailure> {
        let failure = EventFailure::new(self.kind(), self.status());
        (failure.status() != 0 || failure.kind().is_failure()).then_some(failure)
    }

    /// The peer's private data; empty where the event brings none.
    ///
    /// InfiniBand and RoCE transmit a field of fixed size, so there it is the
    /// whole field with zeros behind what the peer sent (56 bytes of a request,
    /// 196 of a response, 148 of a rejection, 180 and 136 of datagram ids);
    /// iWARP transmits its length, so there it is what the peer sent.
    #[must_use]
    #[doc(alias = "private_data_len")]
    pub fn private_data(&self) -> &[u8] {
        // The kernel goes by the type of the id, not by the kind of the event.
        match self.qp_type {
            QpType::UD => self.answer.param.ud().private_data(),
            _ => self.answer.param.conn().private_data(),
        }
    }

    /// What the peer says of its connection, where the event brings it: a
    /// connect request, a response to one, and the establishment (on iWARP; on
    /// RoCE and InfiniBand, where the accepting side had it with the request, that
    /// is all zeros).
    #[must_use]
    #[doc(alias = "rdma_conn_param")]
    pub fn conn(&self) -> Option<ConnInfo> {
        (self.qp_type != QpType::UD && self.brings_parameters())
            .then(|| self.answer.param.conn().into())
    }

    /// What the peer says of its datagram service, where the event brings it: a
    /// question for one, the answer to it, and a multicast group that is joined.
    #[must_use]
    #[doc(alias = "rdma_ud_param")]
    pub fn ud(&self) -> Option<UdInfo> {
        (self.qp_type == QpType::UD && self.brings_parameters())
            .then(|| self.answer.param.ud().into())
    }

    fn brings_parameters(&self) -> bool {
        use EventKind::{ConnectRequest, ConnectResponse, Established, MulticastJoin};
        let kind = self.kind();
        matches!(
            kind,
            ConnectRequest | ConnectResponse | Established | MulticastJoin
        )
    }

    /// The argument of a [`User`](EventKind::User) or
    /// [`Internal`](EventKind::Internal) event.
    #[must_use]
    #[doc(alias = "arg")]
    pub fn argument(&self) -> Option<u64> {
        let written = matches!(self.kind(), EventKind::User | EventKind::Internal);
        written.then(|| self.answer.param.arg())
    }

    /// The peer's options of enhanced connection establishment; zeros where it
    /// has none, as on rxe and siw, and before Linux 5.8.
    #[must_use]
    #[doc(alias = "rdma_get_remote_ece")]
    pub fn ece(&self) -> Ece {
        self.answer.ece
    }

    /// The id a connect request brings.
    #[must_use]
    pub fn child(&self) -> Option<&CmId> {
        self.child.as_ref()
    }

    /// Takes the id a connect request brings, and leaves the rest.
    #[must_use]
    pub fn take_child(&mut self) -> Option<CmId> {
        self.child.take()
    }

    /// Takes the id a connect request brings.
    #[must_use]
    pub fn into_child(self) -> Option<CmId> {
        self.child
    }
}

/// The kind of an event. Source: `enum rdma_cm_event_type` of the kernel's
/// `include/rdma/rdma_cm.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[doc(alias = "rdma_cm_event_type")]
#[doc(alias = "rdma_event_str")]
pub enum EventKind {
    /// The address is resolved: the id has a source and a device.
    #[doc(alias = "RDMA_CM_EVENT_ADDR_RESOLVED")]
    AddrResolved,
    /// The address could not be resolved; the id may try again.
    #[doc(alias = "RDMA_CM_EVENT_ADDR_ERROR")]
    AddrError,
    /// The route is resolved: the id may connect.
    #[doc(alias = "RDMA_CM_EVENT_ROUTE_RESOLVED")]
    RouteResolved,
    /// The route could not be resolved; the id may try again.
    #[doc(alias = "RDMA_CM_EVENT_ROUTE_ERROR")]
    RouteError,
    /// A peer wants to connect; the event carries the child id.
    #[doc(alias = "RDMA_CM_EVENT_CONNECT_REQUEST")]
    ConnectRequest,
    /// The peer accepts; the queue pair moves on and the id establishes.
    #[doc(alias = "RDMA_CM_EVENT_CONNECT_RESPONSE")]
    ConnectResponse,
    /// Connecting failed on this side.
    #[doc(alias = "RDMA_CM_EVENT_CONNECT_ERROR")]
    ConnectError,
    /// The peer did not answer.
    #[doc(alias = "RDMA_CM_EVENT_UNREACHABLE")]
    Unreachable,
    /// The peer said no.
    #[doc(alias = "RDMA_CM_EVENT_REJECTED")]
    Rejected,
    /// The connection is up.
    #[doc(alias = "RDMA_CM_EVENT_ESTABLISHED")]
    Established,
    /// The connection is down.
    #[doc(alias = "RDMA_CM_EVENT_DISCONNECTED")]
    Disconnected,
    /// The id's device is going away; the id can only be dropped.
    #[doc(alias = "RDMA_CM_EVENT_DEVICE_REMOVAL")]
    DeviceRemoval,
    /// The multicast group is joined.
    #[doc(alias = "RDMA_CM_EVENT_MULTICAST_JOIN")]
    MulticastJoin,
    /// The multicast group could not be joined, or was lost.
    #[doc(alias = "RDMA_CM_EVENT_MULTICAST_ERROR")]
    MulticastError,
    /// The id's network interface failed over to another device.
    #[doc(alias = "RDMA_CM_EVENT_ADDR_CHANGE")]
    AddrChange,
    /// The queue pair's number may be used again.
    #[doc(alias = "RDMA_CM_EVENT_TIMEWAIT_EXIT")]
    TimewaitExit,
    /// A service is resolved. Newer than Linux 6.1.
    #[doc(alias = "RDMA_CM_EVENT_ADDRINFO_RESOLVED")]
    AddrInfoResolved,
    /// A service could not be resolved. Newer than Linux 6.1.
    #[doc(alias = "RDMA_CM_EVENT_ADDRINFO_ERROR")]
    AddrInfoError,
    /// An event some user of the id wrote. Newer than Linux 6.1.
    #[doc(alias = "RDMA_CM_EVENT_USER")]
    User,
    /// An event a library of the id's user wrote. Newer than Linux 6.1.
    #[doc(alias = "RDMA_CM_EVENT_INTERNAL")]
    Internal,
    /// A number this library does not know.
    Unknown(u32),
}

impl EventKind {
    /// Whether events of this kind always tell of a failure.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(
            self,
            Self::AddrError
                | Self::RouteError
                | Self::ConnectError
                | Self::Unreachable
                | Self::Rejected
                | Self::DeviceRemoval
                | Self::MulticastError
                | Self::AddrInfoError
        )
    }
}

impl From<EventNumber> for EventKind {
    fn from(number: EventNumber) -> Self {
        match number {
            EventNumber::ADDR_RESOLVED => Self::AddrResolved,
            EventNumber::ADDR_ERROR => Self::AddrError,
            EventNumber::ROUTE_RESOLVED => Self::RouteResolved,
            EventNumber::ROUTE_ERROR => Self::RouteError,
            EventNumber::CONNECT_REQUEST => Self::ConnectRequest,
            EventNumber::CONNECT_RESPONSE => Self::ConnectResponse,
            EventNumber::CONNECT_ERROR => Self::ConnectError,
            EventNumber::UNREACHABLE => Self::Unreachable,
            EventNumber::REJECTED => Self::Rejected,
            EventNumber::ESTABLISHED => Self::Established,
            EventNumber::DISCONNECTED => Self::Disconnected,
            EventNumber::DEVICE_REMOVAL => Self::DeviceRemoval,
            EventNumber::MULTICAST_JOIN => Self::MulticastJoin,
            EventNumber::MULTICAST_ERROR => Self::MulticastError,
            EventNumber::ADDR_CHANGE => Self::AddrChange,
            EventNumber::TIMEWAIT_EXIT => Self::TimewaitExit,
            EventNumber::ADDRINFO_RESOLVED => Self::AddrInfoResolved,
            EventNumber::ADDRINFO_ERROR => Self::AddrInfoError,
            EventNumber::USER => Self::User,
            EventNumber::INTERNAL => Self::Internal,
            other => Self::Unknown(other.number()),
        }
    }
}

impl fmt::Display for EventKind {
    /// The field's name without its prefix, as in `ADDR_RESOLVED`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AddrResolved => "ADDR_RESOLVED",
            Self::AddrError => "ADDR_ERROR",
            Self::RouteResolved => "ROUTE_RESOLVED",
            Self::RouteError => "ROUTE_ERROR",
            Self::ConnectRequest => "CONNECT_REQUEST",
            Self::ConnectResponse => "CONNECT_RESPONSE",
            Self::ConnectError => "CONNECT_ERROR",
            Self::Unreachable => "UNREACHABLE",
            Self::Rejected => "REJECTED",
            Self::Established => "ESTABLISHED",
            Self::Disconnected => "DISCONNECTED",
            Self::DeviceRemoval => "DEVICE_REMOVAL",
            Self::MulticastJoin => "MULTICAST_JOIN",
            Self::MulticastError => "MULTICAST_ERROR",
            Self::AddrChange => "ADDR_CHANGE",
            Self::TimewaitExit => "TIMEWAIT_EXIT",
            Self::AddrInfoResolved => "ADDRINFO_RESOLVED",
            Self::AddrInfoError => "ADDRINFO_ERROR",
            Self::User => "USER",
            Self::Internal => "INTERNAL",
            Self::Unknown(number) => return write!(f, "event {number}"),
        })
    }
}
