//! Events that this library makes, for readers on any kernel.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rdmacm_abi::{EventNumber, EventResponse};
use zerocopy::FromZeros;

use super::Shared;
use crate::token::Token;

/// An event as it will be delivered: by the way the kernel's go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalEvent {
    pub(crate) token: Token,
    pub(crate) event: EventNumber,
    pub(crate) status: i32,
}

impl From<LocalEvent> for EventResponse {
    fn from(posted: LocalEvent) -> Self {
        let mut answer = Self::new_zeroed();
        answer.uid = posted.token.uid();
        answer.event = posted.event;
        answer.raw_status = u32::from_ne_bytes(posted.status.to_ne_bytes());
        answer
    }
}

/// The events of a channel that the kernel knows nothing of, oldest first.
#[derive(Debug, Default)]
pub(crate) struct LocalEvents(Mutex<VecDeque<LocalEvent>>);

impl LocalEvents {
    /// Whole between any two statements, so a panic elsewhere while it was locked
    /// leaves nothing broken.
    fn queue(&self) -> MutexGuard<'_, VecDeque<LocalEvent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self) -> Option<LocalEvent> {
        self.queue().pop_front()
    }
}

impl Shared {
    /// Queues an event, and makes whoever waits here look for it.
    pub(crate) fn post(&self, posted: LocalEvent) {
        self.local_events.queue().push_back(posted);
        self.ucma.notify();
    }

    /// Moves the unread ones of an id to another channel; nobody is told.
    pub(crate) fn hand_over(&self, token: Token, to: &Self) {
        // One after the other, never both locked: two ids may cross.
        let leaving: VecDeque<_> = {
            let mut here = self.local_events.queue();
            let (leaving, staying) = here.drain(..).partition(|one| one.token == token);
            *here = staying;
            leaving
        };
        to.local_events.queue().extend(leaving);
    }

    /// Forgets the unread ones of an id.
    pub(crate) fn discard(&self, token: Token) {
        self.local_events.queue().retain(|one| one.token != token);
    }
}
