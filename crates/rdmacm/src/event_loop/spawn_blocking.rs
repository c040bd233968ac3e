//! Waiting for what runs on the blocking executor.

use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use rdmacm_core as core;

use super::{EventLoop, WaitSource, wait_for};
use crate::sync::Mutex;

/// The result of a task, and its waiter.
struct Slot<T> {
    result: Option<T>,
    waiter: Option<Waker>,
    has_started: bool,
    /// The task has returned, panicked, or was dropped.
    is_over: bool,
}

/// Why a task has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskLost {
    Panicked,
    /// The executor has dropped it instead of running it.
    Dropped,
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
    type Item = Result<T, TaskLost>;

    fn take(&mut self) -> Option<Result<T, TaskLost>> {
        let mut slot = self.0.lock();
        match slot.result.take() {
            Some(result) => Some(Ok(result)),
            None if !slot.is_over => None,
            None if slot.has_started => Some(Err(TaskLost::Panicked)),
            None => Some(Err(TaskLost::Dropped)),
        }
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

/// Runs a task on the blocking executor and waits for its result, until `until` at most, and
/// for one that has started then `lateness` more. Dropping the future leaves the task running, with
/// nothing but the slot for its result.
///
/// # Errors
/// [`DeadlinePassed`](rdmacm_core::Error::DeadlinePassed), or why the event loop has failed.
pub(crate) async fn spawn_blocking<T: Send + 'static>(
    event_loop: &Arc<EventLoop>,
    until: Option<Instant>,
    lateness: Duration,
    task: impl FnOnce() -> T + Send + 'static,
) -> core::Result<Result<T, TaskLost>> {
    let slot = Arc::new(Mutex::new(Slot {
        result: None,
        waiter: None,
        has_started: false,
        is_over: false,
    }));
    let sender = ResultSender(Arc::clone(&slot));
    event_loop.executor().spawn(Box::new(move || {
        sender.0.lock().has_started = true;
        let result = task();
        sender.0.lock().result = Some(result);
    }));
    match wait_for(event_loop, ResultReceiver(Arc::clone(&slot)), until).await {
        Err(core::Error::DeadlinePassed) if slot.lock().has_started => {
            let until = until.and_then(|until| until.checked_add(lateness));
            wait_for(event_loop, ResultReceiver(slot), until).await
        }
        waited => waited,
    }
}
