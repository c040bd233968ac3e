//! How a connection ended.

use std::fmt;

use rdmacm_core::{Event, EventFailure, EventKind};
#[cfg(feature = "verbs")]
use rdmacm_verbs::CompletionError;

/// How a connection ended: the event that said so, and the request that had failed
/// before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    kind: EventKind,
    failure: Option<EventFailure>,
    #[cfg(feature = "verbs")]
    failed_request: Option<CompletionError>,
}

impl Ending {
    /// What an event says of the end; `None` where the connection goes on.
    /// `ADDR_CHANGE` is the user's affair: it goes on by the old path until that
    /// fails.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        let ends = matches!(
            event.kind(),
            EventKind::Disconnected
                | EventKind::DeviceRemoval
                | EventKind::Unreachable
                | EventKind::Rejected
                | EventKind::ConnectError
        );
        ends.then(|| Self {
            kind: event.kind(),
            failure: event.failure(),
            #[cfg(feature = "verbs")]
            failed_request: None,
        })
    }

    /// This side disconnects because a request failed.
    #[cfg(feature = "verbs")]
    pub(crate) fn by(error: CompletionError) -> Self {
        Self {
            kind: EventKind::Disconnected,
            failure: None,
            failed_request: Some(error),
        }
    }

    /// The same, after a request had failed.
    #[cfg(feature = "verbs")]
    pub(crate) fn after(self, error: CompletionError) -> Self {
        Self {
            failed_request: Some(error),
            ..self
        }
    }

    /// [`Disconnected`](EventKind::Disconnected) where either side disconnected,
    /// [`DeviceRemoval`](EventKind::DeviceRemoval) where the device went away,
    /// [`Unreachable`](EventKind::Unreachable) where the neighbour changed,
    /// [`Rejected`](EventKind::Rejected) where the peer gave up before it had
    /// heard that the connection was there.
    #[must_use]
    pub fn kind(&self) -> EventKind {
        self.kind
    }

    /// What the event says went wrong.
    ///
    /// `None` does not mean that the peer's program disconnected by itself: if it is
    /// killed, its kernel disconnects for it, with the same message on the wire (a
    /// DREQ on RoCE and InfiniBand, the end of the stream on iWARP). A protocol that
    /// must know the difference ends with a message of its own.
    #[must_use]
    pub fn failure(&self) -> Option<EventFailure> {
        self.failure
    }

    /// The request that had failed before the connection ended, where one of its
    /// [messages](crate::Messages) had: the peer's device refused it or did not answer,
    /// because its program was ending or because of the request.
    #[cfg(feature = "verbs")]
    #[must_use]
    pub fn failed_request(&self) -> Option<CompletionError> {
        self.failed_request
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.failure {
            Some(failure) => failure.fmt(f)?,
            None => self.kind.fmt(f)?,
        }
        // Without its likely cause, which may be the end itself.
        #[cfg(feature = "verbs")]
        if let Some(CompletionError { kind, status, .. }) = self.failed_request {
            write!(f, " ({kind} had failed before: {status:?})")?;
        }
        Ok(())
    }
}
