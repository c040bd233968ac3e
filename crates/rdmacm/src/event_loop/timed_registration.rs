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
    fn timers(&mut self) -> [Option<Instant>; 2] {
        [None; 2]
    }

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
pub(super) struct TimedRegistration(Option<Registered>);

#[derive(Debug)]
struct Registered {
    registration: Registration,
    /// What its timer was set for.
    moments: Moments,
}

/// The deadline, and the timers of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moments {
    until: Option<Instant>,
    timers: [Option<Instant>; 2],
}

impl Moments {
    fn first(self) -> Option<Instant> {
        let [one, other] = self.timers;
        [self.until, one, other].into_iter().flatten().min()
    }
}

impl TimedRegistration {
    pub(super) fn is_registered(&self) -> bool {
        self.0.is_some()
    }

    /// As [`Registration::has_failed_for_another`].
    pub(super) fn has_failed_for_another(&self, event_loop: &EventLoop, waker: &Waker) -> bool {
        let registered = self.0.as_ref();
        registered.is_some_and(|registered| {
            registered
                .registration
                .has_failed_for_another(event_loop, waker)
        })
    }

    /// The source's next item, until `until` at most. Whoever is not registered has looked at the
    /// source just now.
    #[inline]
    pub(super) fn poll<S: TimedSource>(
        &mut self,
        event_loop: &EventLoop,
        kind: WaiterKind,
        source: &mut S,
        until: Option<Instant>,
        context: &mut Context<'_>,
    ) -> Poll<Result<S::Item>> {
        loop {
            let timers = source.timers();
            let moments = Moments { until, timers };
            let by = moments.first();
            let registered = self.0.get_or_insert_with(|| Registered {
                registration: Registration::after_check(event_loop, kind, by),
                moments,
            });
            if registered.moments != moments {
                registered.registration.set_until(event_loop, by);
                registered.moments = moments;
            }
            match registered.registration.poll(event_loop, source, context) {
                Poll::Pending if source.have_timers_changed(timers) => {}
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(Error::DeadlinePassed)) if until != by => {
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
        let mut registered = self.0.take()?;
        registered.registration.deregister(event_loop, deregister)
    }
}
