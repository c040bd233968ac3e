//! The event channel as an event source.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use rdmacm_core::{Error, Event, EventChannel, EventKind, IdHandle, Result};

use super::event_queue::{EventQueue, QueuedEvent};
use super::source::{Drained, MAX_EVENTS};
use crate::sync::{Mutex, MutexGuard};

/// An event channel, and the event queues of its ids.
#[derive(Debug)]
pub(super) struct CmEvents {
    channel: EventChannel,
    queues: Mutex<Queues>,
}

type Queues = HashMap<IdHandle, Arc<EventQueue>, BuildHasherDefault<TokenHasher>>;

/// Hashes ids by their tokens. No peer chooses one, so that a keyed hash is not needed.
#[derive(Debug, Default)]
struct TokenHasher(u64);

impl Hasher for TokenHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // Odd, and near the golden ratio: numbers that follow each other are spread evenly.
        const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
        self.0 = (self.0 ^ number).wrapping_mul(FACTOR);
    }

    /// The table uses the highest bits and the lowest ones, and the product's lowest bits are
    /// those of the number.
    fn finish(&self) -> u64 {
        self.0.rotate_left(32)
    }
}

impl CmEvents {
    pub(super) fn new(channel: EventChannel) -> Self {
        Self {
            channel,
            queues: Mutex::default(),
        }
    }

    pub(super) fn channel(&self) -> &EventChannel {
        &self.channel
    }

    pub(super) fn add(&self, id: &IdHandle, queue: &Arc<EventQueue>) {
        self.queues().insert(id.clone(), Arc::clone(queue));
    }

    pub(super) fn remove(&self, id: &IdHandle) {
        let queue = self.queues().remove(id);
        // Dropped without the lock: queued connect requests own ids.
        drop(queue);
    }

    /// Reads at most so many events. Ends with a wake-up, which is often all there is.
    ///
    /// # Errors
    /// Why the channel could not be read.
    pub(super) fn drain(&self, max_events: usize) -> Result<Drained> {
        self.drain_until(max_events, || false)
    }

    /// As [`drain`](Self::drain), until there is an event for this queue.
    ///
    /// # Errors
    /// Why the channel could not be read.
    pub(super) fn drain_for(&self, queue: &EventQueue) -> Result<Drained> {
        self.drain_until(MAX_EVENTS, || queue.is_ready())
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each event")]
    fn drain_until(&self, max_events: usize, is_enough: impl Fn() -> bool) -> Result<Drained> {
        for _ in 0..max_events {
            if is_enough() {
                return Ok(Drained::Open);
            }
            match self.channel.try_next_event() {
                Ok(Some(event)) => self.dispatch(event),
                Ok(None) => return Ok(Drained::Open),
                // It comes before all events.
                Err(Error::Woken) => return Ok(Drained::Share),
                Err(error) => return Err(error),
            }
        }
        Ok(Drained::after(max_events))
    }

    fn dispatch(&self, event: Event) {
        // An event of a multicast group has the group's id, a connect request has the
        // listener's. An event whose id has just been destroyed is dropped.
        let queue = self.queues().get(event.id()).cloned();
        let Some(queue) = queue else {
            return;
        };
        queue.trace().event(&event);
        let is_disconnect = event.kind() == EventKind::Disconnected;
        let pending = PendingEvent(&queue, Some(event));
        if is_disconnect {
            queue.disconnect_state().reply();
        }
        drop(pending);
    }

    #[cfg(test)]
    pub(super) fn while_locked(&self, work: impl FnOnce()) {
        let queues = self.queues();
        work();
        drop(queues);
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock()
    }
}

/// An event that is queued when this is dropped, also if a caller's queue pair panics before.
struct PendingEvent<'a>(&'a EventQueue, Option<Event>);

impl Drop for PendingEvent<'_> {
    fn drop(&mut self) {
        if let Some(event) = self.1.take() {
            self.0.push(QueuedEvent::Cm(event));
        }
    }
}
