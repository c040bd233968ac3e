//! Events.

use rdmacm_abi::{Ece, EventNumber, EventParam, EventResponse, QpType};

use crate::event_failure::EventFailure;
use crate::event_info::{ConnInfo, UdInfo};
use crate::event_kind::EventKind;
use crate::id::CmId;
use crate::id_handle::IdHandle;
use crate::token::Token;

/// An event of a channel. It is an owned value: it keeps neither its id nor its channel
/// alive and needs no acknowledgement.
///
/// A connect request owns the child id of the new connection. Take it with
/// [`into_child`](Self::into_child); dropping the event destroys it, which rejects the
/// peer.
///
/// It is small, because programs move and queue events. What a peer sent is allocated
/// beside it; an event without such parameters allocates nothing.
#[derive(Debug)]
#[doc(alias = "rdma_cm_event")]
#[doc(alias = "rdma_ack_cm_event")]
pub struct Event {
    id: IdHandle,
    child: Option<CmId>,
    /// `None` for zeros.
    param: Option<Box<EventParam>>,
    /// Of the id, or of a group of it.
    token: Token,
    number: EventNumber,
    status: i32,
    ece: Ece,
}

impl Event {
    #[inline]
    pub(crate) fn new(id: IdHandle, child: Option<CmId>, answer: &EventResponse) -> Self {
        Self {
            id,
            child,
            param: parameters(answer),
            token: Token::from_kernel(answer.uid),
            number: answer.event,
            status: answer.status(),
            ece: answer.ece,
        }
    }

    /// The group that the event is about.
    pub(crate) fn group(&self) -> Option<Token> {
        (self.token != self.id.token()).then_some(self.token)
    }

    fn param(&self) -> &EventParam {
        self.param.as_deref().unwrap_or(&EventParam::ZERO)
    }

    /// The id of the event; for a connect request the listener.
    #[must_use]
    #[doc(alias = "listen_id")]
    pub fn id(&self) -> &IdHandle {
        &self.id
    }

    /// What happened.
    #[must_use]
    pub fn kind(&self) -> EventKind {
        self.number.into()
    }

    /// The kernel's status: 0 or a negative error number. For
    /// [`Rejected`](EventKind::Rejected) and, on unreliable datagram ids,
    /// [`Unreachable`](EventKind::Unreachable) it may be the positive code of the
    /// connection manager's protocol, and for [`User`](EventKind::User) it is what the event was
    /// written with.
    #[must_use]
    pub fn status(&self) -> i32 {
        self.status
    }

    /// The failure that this event reports; `None` if it reports success. An event of a program's
    /// own ([`User`](EventKind::User)) with a status other than 0 counts as a failure.
    #[must_use]
    pub fn failure(&self) -> Option<EventFailure> {
        EventFailure::of(self.kind(), self.status)
    }

    /// This event as a failure, whatever it reports: to a caller that waits for something
    /// else, an event is one although its status is 0, such as
    /// [`AddrChange`](EventKind::AddrChange) while a connection is being established.
    #[must_use]
    pub fn as_failure(&self) -> EventFailure {
        EventFailure::new(self.kind(), self.status)
    }

    /// The peer's private data; empty if the event has none.
    ///
    /// InfiniBand and RoCE transmit a field of fixed size, so this is the whole field,
    /// padded with zeros: 56 bytes of a request, 196 of a response, 148 of a rejection;
    /// 180 and 136 of datagram ids. Between InfiniBand addresses a request has 92, one to a
    /// datagram id 216. iWARP transmits the length, so this is exactly what the peer sent.
    #[must_use]
    #[doc(alias = "private_data_len")]
    pub fn private_data(&self) -> &[u8] {
        // The format depends on the type of the id, not on the kind of the event.
        match self.id.qp_type() {
            QpType::UD => self.param().ud().private_data(),
            _ => self.param().conn().private_data(),
        }
    }

    /// The peer's connection parameters, for events that have them: a connect request, a
    /// response, and on iWARP the establishment. (On RoCE and InfiniBand the establishment
    /// has zeros; the accepting side had the parameters with the request.)
    #[must_use]
    #[doc(alias = "rdma_conn_param")]
    pub fn conn(&self) -> Option<ConnInfo> {
        (self.id.qp_type() != QpType::UD && self.has_parameters())
            .then(|| self.param().conn().into())
    }

    /// The peer's datagram parameters, for events that have them: a SIDR request, the
    /// reply, and a multicast group that was joined.
    #[must_use]
    #[doc(alias = "rdma_ud_param")]
    pub fn ud(&self) -> Option<UdInfo> {
        (self.id.qp_type() == QpType::UD && self.has_parameters()).then(|| self.param().ud().into())
    }

    fn has_parameters(&self) -> bool {
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
        written.then(|| self.param().arg())
    }

    /// The peer's options of enhanced connection establishment; zeros if it has none, as
    /// on rxe and siw. Needs Linux 5.8 or newer, before that zeros.
    #[must_use]
    #[doc(alias = "rdma_get_remote_ece")]
    pub fn ece(&self) -> Ece {
        self.ece
    }

    /// The child id of a connect request.
    #[must_use]
    #[doc(alias = "rdma_get_request")]
    pub fn child(&self) -> Option<&CmId> {
        self.child.as_ref()
    }

    /// Takes the child id of a connect request out of the event.
    #[must_use]
    #[doc(alias = "rdma_get_request")]
    pub fn take_child(&mut self) -> Option<CmId> {
        self.child.take()
    }

    /// Converts a connect request into its child id.
    #[must_use]
    #[doc(alias = "rdma_get_request")]
    pub fn into_child(self) -> Option<CmId> {
        self.child
    }
}

/// The parameters of an event, if there are any.
#[inline]
fn parameters(answer: &EventResponse) -> Option<Box<EventParam>> {
    // Nothing comes from a peer, so the kernel has none.
    let has_none = matches!(
        answer.event,
        EventNumber::ADDR_RESOLVED | EventNumber::ROUTE_RESOLVED | EventNumber::ROUTE_ERROR
    );
    if has_none {
        None
    } else {
        copied(&answer.param)
    }
}

/// A copy of the parameters, unless they are all zeros.
#[inline(never)]
fn copied(param: &EventParam) -> Option<Box<EventParam>> {
    (*param != EventParam::ZERO).then(|| Box::new(*param))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_small() {
        assert_eq!(size_of::<Event>(), 64);
        assert!(size_of::<crate::Result<Event>>() <= 72);
    }
}
