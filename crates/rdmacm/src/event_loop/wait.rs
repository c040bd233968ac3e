//! Waiting for one source: what every future of this crate is made of.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use rdmacm_core::{Error, Result};

use super::{EventLoop, TimerId, WaiterKind};

/// Something that a task or thread waits for, such as the next event of an id.
pub(crate) trait WaitSource {
    /// What comes.
    type Item;

    /// Takes what is there.
    fn take(&mut self) -> Option<Self::Item>;

    /// Wakes `waker` when something comes.
    fn register(&mut self, key: u64, waker: &Waker);

    /// Removes a waiter that looks at the source next, and adds it again if it finds nothing:
    /// whoever brings something meanwhile need not wake it.
    fn withdraw(&mut self, key: u64) {
        let _ = key;
    }

    /// Removes a waiter. If it was woken for an item, another waiter is woken instead.
    fn deregister(&mut self, key: u64);
}

impl<S: WaitSource> WaitSource for &mut S {
    type Item = S::Item;

    fn take(&mut self) -> Option<S::Item> {
        S::take(self)
    }

    fn register(&mut self, key: u64, waker: &Waker) {
        S::register(self, key, waker);
    }

    fn withdraw(&mut self, key: u64) {
        S::withdraw(self, key);
    }

    fn deregister(&mut self, key: u64) {
        S::deregister(self, key);
    }
}

/// Waits for the next item of the source, until `until` at most.
///
/// Dropping the future loses nothing: the item stays for the next caller, and another
/// waiter runs the event loop.
pub(crate) fn wait_for<S: WaitSource + Unpin>(
    event_loop: &Arc<EventLoop>,
    source: S,
    until: Option<Instant>,
) -> Wait<'_, S> {
    Wait {
        event_loop,
        source,
        registration: Registration::new(event_loop, until),
    }
}

/// Waits until a moment.
pub(crate) async fn sleep_until(event_loop: &Arc<EventLoop>, until: Instant) -> Result<()> {
    match wait_for(event_loop, Nothing, Some(until)).await {
        Err(Error::DeadlinePassed) => Ok(()),
        other => other.map(drop),
    }
}

/// Runs the event loop until it fails.
pub(crate) async fn drive(event_loop: &Arc<EventLoop>) -> Result<Infallible> {
    let driving = Wait {
        event_loop,
        source: Nothing,
        registration: Registration {
            kind: WaiterKind::Driver,
            ..Registration::new(event_loop, None)
        },
    };
    driving.await
}

/// A source without items, for waiters that wait for a moment.
#[derive(Debug)]
struct Nothing;

impl WaitSource for Nothing {
    type Item = Infallible;

    fn take(&mut self) -> Option<Infallible> {
        None
    }

    fn register(&mut self, _: u64, _: &Waker) {}

    fn deregister(&mut self, _: u64) {}
}

/// One waiter of an event loop. It outlives the polls of a future, and is ended with
/// [`deregister`](Self::deregister).
#[derive(Debug)]
pub(crate) struct Registration {
    kind: WaiterKind,
    until: Option<Instant>,
    key: Option<u64>,
    timer: Option<TimerId>,
    /// How many failures of the event loop came before this wait.
    failures: u64,
    /// The caller has checked the source just now.
    has_checked: bool,
}

impl Registration {
    pub(crate) fn new(event_loop: &EventLoop, until: Option<Instant>) -> Self {
        Self {
            kind: WaiterKind::Future,
            until,
            key: None,
            timer: None,
            failures: event_loop.failures(),
            has_checked: false,
        }
    }

    /// Of a caller that has checked the source just now: it is checked again only after
    /// the waiter is registered.
    pub(crate) fn after_check(
        event_loop: &EventLoop,
        kind: WaiterKind,
        until: Option<Instant>,
    ) -> Self {
        Self {
            kind,
            has_checked: true,
            ..Self::new(event_loop, until)
        }
    }

    /// The source's next item.
    pub(crate) fn poll<S: WaitSource>(
        &mut self,
        event_loop: &EventLoop,
        source: &mut S,
        context: &mut Context<'_>,
    ) -> Poll<Result<S::Item>> {
        if event_loop.is_due() {
            // A task that wakes itself would be polled once more for nothing.
            if let Some(key) = self.key {
                source.withdraw(key);
            }
            event_loop.run_if_due();
        }
        if !std::mem::take(&mut self.has_checked) {
            if let Some(outcome) = self.check(event_loop, source) {
                return Poll::Ready(outcome);
            }
        }
        let kind = self.kind;
        let key = *self
            .key
            .get_or_insert_with(|| kind.key(event_loop.new_key()));
        source.register(key, context.waker());
        let timer = &mut self.timer;
        event_loop.add_waiter(key, self.until, timer, context.waker());
        // Whatever comes from here on wakes the waker; the check finds what came before.
        event_loop.ensure_wake_up();
        self.check(event_loop, source)
            .map_or(Poll::Pending, Poll::Ready)
    }

    /// Whether the event loop has failed since a caller registered that wakes by another waker
    /// than this one.
    pub(crate) fn has_failed_for_another(&self, event_loop: &EventLoop, waker: &Waker) -> bool {
        if event_loop.failures() == self.failures {
            return false;
        }
        let state = event_loop.state();
        let known = self.key.and_then(|key| state.tasks.get(key));
        known.is_none_or(|known| !known.will_wake(waker))
    }

    /// Waits until another moment from now on.
    pub(crate) fn set_until(&mut self, event_loop: &EventLoop, until: Option<Instant>) {
        self.until = until;
        if let Some(timer) = self.timer.take() {
            event_loop.remove_timer(timer);
        }
    }

    fn check<S: WaitSource>(
        &self,
        event_loop: &EventLoop,
        source: &mut S,
    ) -> Option<Result<S::Item>> {
        if let Some(item) = source.take() {
            return Some(Ok(item));
        }
        if let Err(error) = event_loop.failed_since(self.failures) {
            return Some(Err(error));
        }
        let timer = self.timer.as_ref();
        let has_passed = timer.is_some_and(|timer| event_loop.has_fired(timer));
        has_passed.then_some(Err(Error::DeadlinePassed))
    }

    /// Ends the wait; `deregister` removes its waiter from the source. Returns the waker of a task.
    pub(crate) fn deregister(
        &mut self,
        event_loop: &EventLoop,
        deregister: impl FnOnce(u64),
    ) -> Option<Waker> {
        let key = self.key.take()?;
        deregister(key);
        event_loop.remove_waiter(key, self.timer.take())
    }
}

#[derive(Debug)]
pub(crate) struct Wait<'a, S: WaitSource> {
    event_loop: &'a Arc<EventLoop>,
    source: S,
    registration: Registration,
}

impl<S: WaitSource + Unpin> Future for Wait<'_, S> {
    type Output = Result<S::Item>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.registration
            .poll(this.event_loop, &mut this.source, context)
    }
}

impl<S: WaitSource> Drop for Wait<'_, S> {
    fn drop(&mut self) {
        let source = &mut self.source;
        self.registration
            .deregister(self.event_loop, |key| source.deregister(key));
    }
}
