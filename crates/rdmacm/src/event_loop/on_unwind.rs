//! What is done if a wait panics.

/// Calls `leave` when it is dropped, unless it is [defused](OnUnwind::defuse) before: a caller's
/// queue pair may panic while its thread reads events.
pub(crate) fn on_unwind<F: FnOnce()>(leave: F) -> OnUnwind<F> {
    OnUnwind(Some(leave))
}

/// See [`on_unwind`].
pub(crate) struct OnUnwind<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> OnUnwind<F> {
    pub(crate) fn defuse(mut self) {
        self.0 = None;
    }
}

impl<F: FnOnce()> Drop for OnUnwind<F> {
    fn drop(&mut self) {
        if let Some(leave) = self.0.take() {
            leave();
        }
    }
}
