//! Why a connection closed.

use std::fmt;

#[cfg(feature = "verbs")]
use rdmacm_core::Transport;
use rdmacm_core::{Event, EventFailure, EventKind};

use crate::failed_request::FailedRequest;

/// Why a connection closed: the connection manager's event, and the failed request that preceded
/// it, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseReason {
    kind: EventKind,
    failure: Option<EventFailure>,
    failed_request: Option<FailedRequest>,
}

impl CloseReason {
    /// The connection has ended, which its event, unread yet, may explain.
    #[cfg(feature = "verbs")]
    pub(crate) const UNREAD: Self = Self {
        kind: EventKind::Disconnected,
        failure: None,
        failed_request: None,
    };

    /// The reason that an event of this kind gives, for tests of programs that handle it.
    #[must_use]
    pub fn new(kind: EventKind, failure: Option<EventFailure>) -> Self {
        Self {
            kind,
            failure,
            failed_request: None,
        }
    }

    /// What an event says; `None` if the connection stays open. An `ADDR_CHANGE` does not
    /// close it: it uses the old path until that fails.
    pub(crate) fn from_event(event: &Event) -> Option<Self> {
        let closes = matches!(
            event.kind(),
            EventKind::Disconnected
                | EventKind::DeviceRemoval
                | EventKind::Unreachable
                | EventKind::Rejected
                | EventKind::ConnectError
        );
        closes.then(|| Self::new(event.kind(), event.failure()))
    }

    /// This side disconnects because a request failed, or the same after an event.
    pub(crate) fn with_failed_request(reason: Option<Self>, request: FailedRequest) -> Self {
        Self {
            kind: reason.map_or(EventKind::Disconnected, |reason| reason.kind),
            failure: reason.and_then(|reason| reason.failure),
            failed_request: Some(request),
        }
    }

    /// [`Disconnected`](EventKind::Disconnected) if either side disconnected,
    /// [`DeviceRemoval`](EventKind::DeviceRemoval) if the device was removed,
    /// [`Unreachable`](EventKind::Unreachable) if the neighbour changed,
    /// [`Rejected`](EventKind::Rejected) if the peer gave up before it knew that the
    /// connection was established.
    #[must_use]
    pub fn kind(&self) -> EventKind {
        self.kind
    }

    /// The failure that the event reports.
    ///
    /// `None` does not mean that the peer's program disconnected: if it is killed, its
    /// kernel disconnects for it, with the same message on the wire (a DREQ on RoCE and
    /// InfiniBand, the end of the stream on iWARP). A protocol that must know the
    /// difference ends with a message of its own.
    #[must_use]
    pub fn failure(&self) -> Option<EventFailure> {
        self.failure
    }

    /// The request that had failed before, of a connection that carries messages: the
    /// peer's device refused it or did not acknowledge it, because of the request or
    /// because the peer's program was ending.
    #[must_use]
    pub fn failed_request(&self) -> Option<FailedRequest> {
        self.failed_request
    }

    /// Whether the queue pair completes all that was posted: it was moved to ERR when the peer's
    /// message was read, and not for any other event. siw does not complete requests that were
    /// posted after the end, unless it is moved again.
    #[cfg(feature = "verbs")]
    pub(crate) fn flushes(&self, transport: Transport) -> bool {
        self.kind == EventKind::Disconnected && transport != Transport::IWarp
    }

    /// Whether one side disconnected, and nothing had failed.
    #[must_use]
    pub fn is_orderly(&self) -> bool {
        self.kind == EventKind::Disconnected
            && self.failure.is_none()
            && self.failed_request.is_none()
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.failure {
            Some(failure) => failure.fmt(f)?,
            None => self.kind.fmt(f)?,
        }
        match self.failed_request {
            // Without its likely cause, which may be that the connection closed.
            Some(request) => write!(f, " ({} before)", request.summary()),
            None => Ok(()),
        }
    }
}
