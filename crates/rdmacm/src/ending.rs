//! How a connection ended.

use std::fmt;

use rdmacm_core::{Event, EventFailure, EventKind};

/// How a connection ended: the event that said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    kind: EventKind,
    failure: Option<EventFailure>,
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
        })
    }

    /// [`Disconnected`](EventKind::Disconnected) where either side parted,
    /// [`DeviceRemoval`](EventKind::DeviceRemoval) where the device went away,
    /// [`Unreachable`](EventKind::Unreachable) where the neighbour changed,
    /// [`Rejected`](EventKind::Rejected) where the peer gave up before it had
    /// heard that the connection was there.
    #[must_use]
    pub fn kind(&self) -> EventKind {
        self.kind
    }

    /// What went wrong; `None` where somebody parted in order.
    #[must_use]
    pub fn failure(&self) -> Option<EventFailure> {
        self.failure
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.failure {
            Some(failure) => failure.fmt(f),
            None => self.kind.fmt(f),
        }
    }
}
