//! Events that this library generates.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rdmacm_abi::{EventNumber, EventResponse};
use zerocopy::FromZeros;

use crate::token::Token;

/// An event that this library generates. It is delivered like the kernel's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalEvent {
    pub(crate) token: Token,
    pub(crate) event: EventNumber,
    pub(crate) status: i32,
}

impl From<LocalEvent> for EventResponse {
    fn from(local: LocalEvent) -> Self {
        let mut response = Self::new_zeroed();
        response.uid = local.token.uid();
        response.event = local.event;
        response.raw_status = u32::from_ne_bytes(local.status.to_ne_bytes());
        response
    }
}

/// The unread local events of a channel, oldest first.
#[derive(Debug, Default)]
pub(super) struct LocalEvents(Mutex<VecDeque<LocalEvent>>);

impl LocalEvents {
    pub(super) fn push(&self, event: LocalEvent) {
        self.queue().push_back(event);
    }

    pub(super) fn pop(&self) -> Option<LocalEvent> {
        self.queue().pop_front()
    }

    /// Moves the events with this token to the end of another queue.
    pub(super) fn move_to(&self, other: &Self, token: Token) {
        // Never locks both queues: two ids may migrate in opposite directions.
        let moved: VecDeque<_> = {
            let mut queue = self.queue();
            let (moved, rest) = queue.drain(..).partition(|event| event.token == token);
            *queue = rest;
            moved
        };
        other.queue().extend(moved);
    }

    pub(super) fn discard(&self, token: Token) {
        self.queue().retain(|event| event.token != token);
    }

    /// The queue is valid between any two statements, so a panic that poisons the
    /// lock leaves it valid.
    fn queue(&self) -> MutexGuard<'_, VecDeque<LocalEvent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
