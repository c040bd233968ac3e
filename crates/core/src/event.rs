//! Events.

use std::sync::Arc;

use rdmacm_abi::{Ece, EventResponse, QpType};

use crate::event_failure::EventFailure;
use crate::event_info::{ConnInfo, UdInfo};
use crate::event_kind::EventKind;
use crate::id::CmId;
use crate::id_handle::IdHandle;
use crate::id_state::IdState;
use crate::token::Token;

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
    pub(crate) fn new(id: &Arc<IdState>, answer: &EventResponse) -> Self {
        Self {
            id: IdHandle::new(id),
            child: None,
            group: None,
            qp_type: id.qp_type(),
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
