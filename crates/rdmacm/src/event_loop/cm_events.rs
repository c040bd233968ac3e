//! The event channel as an event source.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, PoisonError};

use rdmacm_core::{Error, Event, EventChannel, EventKind, IdHandle, Result};

use super::event_queue::{EventQueue, QueuedEvent};
use super::source::{Drained, EventSource, MAX_EVENTS};
use crate::sync::{Mutex, MutexGuard};

/// An event channel, and the event queues of its ids.
#[derive(Debug)]
pub(super) struct CmEvents {
    channel: EventChannel,
    queues: Mutex<HashMap<IdHandle, Arc<EventQueue>>>,
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

    fn dispatch(&self, event: Event) {
        // An event of a multicast group has the group's id, a connect request has the
        // listener's. An event whose id has just been destroyed is dropped.
        let queue = self.queues().get(event.id()).cloned();
        let Some(queue) = queue else {
            return;
        };
        queue.trace().event(&event);
        if event.kind() == EventKind::Disconnected {
            queue.reply_to_disconnect();
        }
        queue.push(QueuedEvent::Cm(Box::new(event)));
    }

    fn queues(&self) -> MutexGuard<'_, HashMap<IdHandle, Arc<EventQueue>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSource for CmEvents {
    fn drain(&self) -> Result<Drained> {
        for _ in 0..MAX_EVENTS {
            match self.channel.try_next_event() {
                Ok(Some(event)) => self.dispatch(event),
                Ok(None) => return Ok(Drained::Empty),
                Err(Error::Woken) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Drained::More)
    }
}

impl AsFd for CmEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}
