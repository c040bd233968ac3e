//! Waiting for what runs elsewhere.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use super::Hub;

/// Where a result is put, and who waits for it.
struct Slot<T> {
    result: Option<T>,
    waiter: Option<Waker>,
}

/// Runs a job elsewhere and waits for its result. Dropping the future leaves the
/// job behind, which holds nothing but the place for its result.
pub(crate) async fn elsewhere<T: Send + 'static>(
    hub: &Hub,
    job: impl FnOnce() -> T + Send + 'static,
) -> T {
    let slot = Arc::new(Mutex::new(Slot {
        result: None,
        waiter: None,
    }));
    let theirs = Arc::clone(&slot);
    hub.offload.run(Box::new(move || {
        let result = job();
        let mut slot = theirs.lock().unwrap_or_else(PoisonError::into_inner);
        slot.result = Some(result);
        let waiter = slot.waiter.take();
        drop(slot);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }));
    poll_fn(|context| {
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(result) = slot.result.take() {
            return Poll::Ready(result);
        }
        slot.waiter = Some(context.waker().clone());
        Poll::Pending
    })
    .await
}
