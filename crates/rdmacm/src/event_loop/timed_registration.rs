//! Waiting for a source that has timers of its own.

use std::task::{Context, Poll, Waker};
use std::time::Instant;

use rdmacm_core::{Error, Result};

use super::{EventLoop, Registration, WaitSource, WaiterKind};

/// A source that has timers of its own, such as for keep-alives, besides the deadline of whoever
/// waits for it.
pub(crate) trait TimedSource: WaitSource {
    /// Takes what is there, before anybody waits for it.
    fn try_take(&mut self) -> Option<Self::Item> {
        self.take()
    }

    /// When its timers are due.
    fn timers(&mut self) -> [Option<Instant>; 2];

    /// Some of its timers are due.
    fn timer_due(&mut self, is_due: [bool; 2]) {
        let _ = is_due;
    }

    /// Whether taking has changed its timers, which were these.
    fn have_timers_changed(&mut self, timers: [Option<Instant>; 2]) -> bool {
        let _ = timers;
        false
    }
}

/// A registration until a deadline or a timer of the source, whichever comes first. It stays the
/// same when these change, and so keeps its place among the waiters. It ends when a poll is ready,
/// or with [`end`](Self::end).
#[derive(Debug, Default)]
pub(super) struct TimedRegistration {
    until: Option<Instant>,
    registered: Option<Registered>,
}

#[derive(Debug)]
struct Registered {
    registration: Registration,
    /// The timers of the source when it was set.
    timers: [Option<Instant>; 2],
}

impl TimedRegistration {
    /// Until `until` at most.
    pub(super) fn new(until: Option<Instant>) -> Self {
        Self {
            until,
            registered: None,
        }
    }

    pub(super) fn is_registered(&self) -> bool {
        self.registered.is_some()
    }

    /// As [`Registration::has_failed_for_another`].
    pub(super) fn has_failed_for_another(&self, event_loop: &EventLoop, waker: &Waker) -> bool {
        let registered = self.registered.as_ref();
        registered.is_some_and(|registered| {
            registered
                .registration
                .has_failed_for_another(event_loop, waker)
        })
    }

    /// The source's next item. Whoever is not registered has looked at the source just now.
    #[inline]
    pub(super) fn poll<S: TimedSource>(
        &mut self,
        event_loop: &EventLoop,
        kind: WaiterKind,
        source: &mut S,
        context: &mut Context<'_>,
    ) -> Poll<Result<S::Item>> {
        loop {
            let timers = source.timers();
            let [one, other] = timers;
            let by = [self.until, one, other].into_iter().flatten().min();
            let registered = self.registered.get_or_insert_with(|| Registered {
                registration: Registration::after_check(event_loop, kind, by),
                timers,
            });
            if registered.timers != timers {
                registered.registration.set_until(event_loop, by);
                registered.timers = timers;
            }
            match registered.registration.poll(event_loop, source, context) {
                Poll::Pending if source.have_timers_changed(timers) => {}
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(Error::DeadlinePassed)) if self.until != by => {
                    source.timer_due(timers.map(|timer| timer == by));
                    // It has fired, even if the next one is for the same moment.
                    registered.registration.set_until(event_loop, by);
                }
                ready @ Poll::Ready(_) => {
                    self.end(event_loop, |key| source.deregister(key));
                    return ready;
                }
            }
        }
    }

    /// Ends the wait, as [`Registration::deregister`] does.
    pub(super) fn end(
        &mut self,
        event_loop: &EventLoop,
        deregister: impl FnOnce(u64),
    ) -> Option<Waker> {
        let mut registered = self.registered.take()?;
        registered.registration.deregister(event_loop, deregister)
    }
}
