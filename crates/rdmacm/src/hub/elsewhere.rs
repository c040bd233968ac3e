//! Waiting for what runs elsewhere.

use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Instant;

use super::{Hub, sleep_until};

/// Where a result is put, and who waits for it.
struct Slot<T> {
    result: Option<T>,
    waiter: Option<Waker>,
    /// There will be no result: the job was dropped, or has panicked.
    over: bool,
}

/// The job's side of a slot.
struct Place<T>(Arc<Mutex<Slot<T>>>);

impl<T> Place<T> {
    fn slot(&self) -> MutexGuard<'_, Slot<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for Place<T> {
    fn drop(&mut self) {
        let mut slot = self.slot();
        slot.over = true;
        let waiter = slot.waiter.take();
        drop(slot);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

/// Runs a job elsewhere and waits for its result, by `until`; `None` where none
/// came. Dropping the future leaves the job behind, which holds nothing but the
/// place for its result.
pub(crate) async fn elsewhere<T: Send + 'static>(
    hub: &Arc<Hub>,
    until: Option<Instant>,
    job: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let slot = Arc::new(Mutex::new(Slot {
        result: None,
        waiter: None,
        over: false,
    }));
    let place = Place(Arc::clone(&slot));
    hub.offload.run(Box::new(move || {
        let result = job();
        place.slot().result = Some(result);
    }));
    let mut deadline = until.map(|until| Box::pin(sleep_until(hub, until)));
    poll_fn(|context| {
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.result.is_some() || slot.over {
            return Poll::Ready(slot.result.take());
        }
        let former = slot.waiter.replace(context.waker().clone());
        drop(slot);
        drop(former);
        match &mut deadline {
            Some(deadline) => deadline.as_mut().poll(context).map(|_| None),
            None => Poll::Pending,
        }
    })
    .await
}
