//! The wait of a caller that polls.

use std::task::{Context, Poll};

use rdmacm_core::Result;

use super::timed_registration::TimedRegistration;
use super::{EventLoop, TimedSource, WaiterKind};
use crate::sync::{Mutex, MutexGuard};

/// The waker of the last caller of a `poll_` method, which outlives the call.
#[derive(Debug, Default)]
pub(crate) struct PollSlot(Mutex<TimedRegistration>);

impl PollSlot {
    /// Polls for the next item of the source, which is taken under the slot's lock.
    pub(crate) fn poll<S: TimedSource>(
        &self,
        event_loop: &EventLoop,
        source: &mut S,
        context: &mut Context<'_>,
    ) -> Poll<Result<S::Item>> {
        let mut slot = self.lock();
        if slot.has_failed_for_another(event_loop, context.waker()) {
            // The last caller has gone, and does not learn of the failure, which is over for this
            // one.
            slot.end(event_loop, |key| source.deregister(key));
        }
        if !slot.is_registered() {
            // Mostly there is nothing to wait for.
            if let Some(item) = source.try_take() {
                return Poll::Ready(Ok(item));
            }
        }
        slot.poll(event_loop, WaiterKind::Caller, source, context)
    }

    /// Whether the last caller waits.
    pub(crate) fn is_waiting(&self) -> bool {
        self.lock().is_registered()
    }

    /// Ends the wait of the last caller, and wakes it.
    pub(crate) fn end(&self, event_loop: &EventLoop, deregister: impl FnOnce(u64)) {
        let waker = self.lock().end(event_loop, deregister);
        // One who still waits polls again.
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, TimedRegistration> {
        self.0.lock()
    }
}
