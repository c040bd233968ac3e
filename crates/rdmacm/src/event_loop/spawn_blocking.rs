//! Waiting for what runs on the blocking executor.

use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use rdmacm_core::Result;

use super::{EventLoop, WaitSource, wait_for};
use crate::sync::Mutex;

/// The result of a task, and its waiter.
struct Slot<T> {
    result: Option<T>,
    waiter: Option<Waker>,
    /// The task has returned, panicked, or was dropped.
    is_over: bool,
}

/// The task's side of a slot.
struct ResultSender<T>(Arc<Mutex<Slot<T>>>);

/// The waiter's side.
struct ResultReceiver<T>(Arc<Mutex<Slot<T>>>);

impl<T> Drop for ResultSender<T> {
    fn drop(&mut self) {
        let mut slot = self.0.lock();
        slot.is_over = true;
        let waiter = slot.waiter.take();
        drop(slot);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

impl<T> WaitSource for ResultReceiver<T> {
    /// `None` if the task ended without a result.
    type Item = Option<T>;

    fn take(&mut self) -> Option<Option<T>> {
        let mut slot = self.0.lock();
        let result = slot.result.take();
        (result.is_some() || slot.is_over).then_some(result)
    }

    fn register(&mut self, _: u64, waker: &Waker) {
        let replaced = self.0.lock().waiter.replace(waker.clone());
        // Not under the lock: dropping the last waker of a task ends the task.
        drop(replaced);
    }

    fn deregister(&mut self, _: u64) {
        let waiter = self.0.lock().waiter.take();
        drop(waiter);
    }
}

/// Runs a task on the blocking executor and waits for its result, until `until` at most;
/// `None` if the task panicked, or the executor has dropped it. Dropping the future leaves the
/// task running, with nothing but the slot for its result.
///
/// # Errors
/// [`DeadlinePassed`](rdmacm_core::Error::DeadlinePassed), or why the event loop has failed.
pub(crate) async fn spawn_blocking<T: Send + 'static>(
    event_loop: &Arc<EventLoop>,
    until: Option<Instant>,
    task: impl FnOnce() -> T + Send + 'static,
) -> Result<Option<T>> {
    let slot = Arc::new(Mutex::new(Slot {
        result: None,
        waiter: None,
        is_over: false,
    }));
    let sender = ResultSender(Arc::clone(&slot));
    event_loop.executor().spawn(Box::new(move || {
        let result = task();
        sender.0.lock().result = Some(result);
    }));
    wait_for(event_loop, ResultReceiver(slot), until).await
}
