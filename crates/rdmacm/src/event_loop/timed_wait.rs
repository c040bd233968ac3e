//! Waiting for one source that has timers of its own.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use rdmacm_core::Result;

use super::timed_registration::TimedRegistration;
use super::{EventLoop, TimedSource, WaiterKind};

/// A future that waits for the next item of a source, until a deadline. Dropping it loses nothing,
/// as with [`wait_for`](super::wait_for).
#[derive(Debug)]
pub(crate) struct TimedWait<'a, S: TimedSource> {
    event_loop: &'a EventLoop,
    source: S,
    registration: TimedRegistration,
}

impl<'a, S: TimedSource> TimedWait<'a, S> {
    /// Of a caller that has checked the source just now.
    pub(crate) fn after_check(
        event_loop: &'a EventLoop,
        source: S,
        until: Option<Instant>,
    ) -> Self {
        Self {
            event_loop,
            source,
            registration: TimedRegistration::new(until),
        }
    }
}

/// A poll never pins the source.
impl<S: TimedSource> Unpin for TimedWait<'_, S> {}

impl<S: TimedSource> Future for TimedWait<'_, S> {
    type Output = Result<S::Item>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let (event_loop, kind) = (this.event_loop, WaiterKind::Future);
        this.registration
            .poll(event_loop, kind, &mut this.source, context)
    }
}

impl<S: TimedSource> Drop for TimedWait<'_, S> {
    fn drop(&mut self) {
        let source = &mut self.source;
        self.registration
            .end(self.event_loop, |key| source.deregister(key));
    }
}
