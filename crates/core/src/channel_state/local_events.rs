//! Events that this library generates.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
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
pub(super) struct LocalEvents {
    queue: Mutex<VecDeque<LocalEvent>>,
    /// Whether there ever was an event: few channels have any, and others need no lock.
    /// A reader that does not see it yet reads again, because whoever queues an event
    /// notifies the channel afterwards.
    in_use: AtomicBool,
}

impl LocalEvents {
    pub(super) fn push(&self, event: LocalEvent) {
        self.append([event].into());
    }

    #[inline]
    pub(super) fn pop(&self) -> Option<LocalEvent> {
        if self.is_in_use() {
            self.pop_queued()
        } else {
            None
        }
    }

    #[cold]
    fn pop_queued(&self) -> Option<LocalEvent> {
        self.queue().pop_front()
    }

    /// Moves the events with this token to the end of another queue.
    pub(super) fn move_to(&self, other: &Self, token: Token) {
        if !self.is_in_use() {
            return;
        }
        // Never locks both queues: two ids may migrate in opposite directions.
        let moved: VecDeque<_> = {
            let mut queue = self.queue();
            let (moved, rest) = queue.drain(..).partition(|event| event.token == token);
            *queue = rest;
            moved
        };
        other.append(moved);
    }

    #[inline]
    pub(super) fn discard(&self, token: Token) {
        if self.is_in_use() {
            self.discard_queued(token);
        }
    }

    #[cold]
    fn discard_queued(&self, token: Token) {
        self.queue().retain(|event| event.token != token);
    }

    fn append(&self, events: VecDeque<LocalEvent>) {
        self.queue().extend(events);
        self.in_use.store(true, Ordering::Release);
    }

    fn is_in_use(&self) -> bool {
        self.in_use.load(Ordering::Acquire)
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<LocalEvent>> {
        self.queue.lock()
    }
}
