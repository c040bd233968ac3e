//! The wait of a caller that polls.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use rdmacm_core::Result;

use crate::event_loop::{EventLoop, Registration, WaitSource, WaiterKind};

/// The waker of the last caller of a `poll_` method, which outlives the call.
#[derive(Debug, Default)]
pub(crate) struct PollSlot(Mutex<Option<Registered>>);

/// A registration with an event loop, and the timer that it was made for.
#[derive(Debug)]
struct Registered {
    registration: Registration,
    until: Option<Instant>,
}

impl PollSlot {
    /// Polls for the next item of the source, until `until` at most.
    pub(crate) fn poll<S: WaitSource>(
        &self,
        event_loop: &EventLoop,
        source: &mut S,
        until: Option<Instant>,
        context: &mut Context<'_>,
    ) -> Poll<Result<S::Item>> {
        let mut slot = self.lock();
        if slot.is_none() {
            // Perhaps there is nothing to wait for.
            if let Some(item) = source.take() {
                return Poll::Ready(Ok(item));
            }
        }
        if slot.as_ref().is_some_and(|known| known.until != until) {
            end(event_loop, source, &mut slot);
        }
        let registered = slot.get_or_insert_with(|| Registered {
            registration: Registration::after_look(event_loop, WaiterKind::Caller, until),
            until,
        });
        let polled = registered.registration.poll(event_loop, source, context);
        if polled.is_ready() {
            end(event_loop, source, &mut slot);
        }
        polled
    }

    /// Ends the wait of the last caller, and wakes it.
    pub(crate) fn end<S: WaitSource>(&self, event_loop: &EventLoop, source: &mut S) {
        let mut slot = self.lock();
        let waker = end(event_loop, source, &mut slot);
        drop(slot);
        // One who still waits polls again.
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Registered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the waker of a task.
fn end<S: WaitSource>(
    event_loop: &EventLoop,
    source: &mut S,
    slot: &mut Option<Registered>,
) -> Option<Waker> {
    let mut registered = slot.take()?;
    registered.registration.deregister(event_loop, source)
}
