//! Waiting for what runs on the blocking executor.

use std::future::{Future, poll_fn};
use std::sync::{Arc, PoisonError};
use std::task::{Poll, Waker};
use std::time::Instant;

use super::{EventLoop, sleep_until};
use crate::sync::{Mutex, MutexGuard};

/// The result of a task, and its waiter.
struct Slot<T> {
    result: Option<T>,
    waiter: Option<Waker>,
    /// The task has returned, panicked, or was dropped.
    is_over: bool,
}

/// The task's side of a slot.
struct ResultSender<T>(Arc<Mutex<Slot<T>>>);

impl<T> ResultSender<T> {
    fn slot(&self) -> MutexGuard<'_, Slot<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for ResultSender<T> {
    fn drop(&mut self) {
        let mut slot = self.slot();
        slot.is_over = true;
        let waiter = slot.waiter.take();
        drop(slot);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

/// Runs a task on the blocking executor and waits for its result, until `until` at most;
/// `None` if there is none by then, or the task panicked. Dropping the future leaves the
/// task running, with nothing but the slot for its result.
pub(crate) async fn spawn_blocking<T: Send + 'static>(
    event_loop: &Arc<EventLoop>,
    until: Option<Instant>,
    task: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let slot = Arc::new(Mutex::new(Slot {
        result: None,
        waiter: None,
        is_over: false,
    }));
    let sender = ResultSender(Arc::clone(&slot));
    event_loop.executor().spawn(Box::new(move || {
        let result = task();
        sender.slot().result = Some(result);
    }));
    let mut deadline = until.map(|until| Box::pin(sleep_until(event_loop, until)));
    poll_fn(|context| {
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.result.is_some() || slot.is_over {
            return Poll::Ready(slot.result.take());
        }
        let replaced = slot.waiter.replace(context.waker().clone());
        drop(slot);
        drop(replaced);
        match &mut deadline {
            Some(deadline) => deadline.as_mut().poll(context).map(|_| None),
            None => Poll::Pending,
        }
    })
    .await
}
