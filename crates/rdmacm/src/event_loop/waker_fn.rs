//! Wakers that call a function.

use std::sync::Arc;
use std::task::{Wake, Waker};

/// A waker that calls a function.
pub(crate) fn waker_fn(wake: impl Fn() + Send + Sync + 'static) -> Waker {
    Arc::new(WakerFn(wake)).into()
}

struct WakerFn<F>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for WakerFn<F> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        (self.0)();
    }
}
