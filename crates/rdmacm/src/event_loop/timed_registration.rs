//! Waiting for a source that has timers of its own.

use std::task::{Context, Poll, Waker};
use std::time::Instant;

use rdmacm_core::{Error, Result};

use super::{EventLoop, Registration, WaitSource, WaiterKind};

/// A source that has timers of its own, such as for keep-alives, besides the deadline of whoever
/// waits for it.
pub(crate) trait TimedSource: WaitSource {
    /// Takes what is there, before anybody waits for it.
    fn look(&mut self) -> Option<Self::Item> {
        self.take()
    }

    /// When its timers are due.
    fn timers(&mut self) -> [Option<Instant>; 2] {
        [None; 2]
    }

    /// The timers of this moment are due.
    fn timer_due(&mut self, moment: Option<Instant>) {
        let _ = moment;
    }
}

/// A registration that is made again when the timers change which it was made for. It is ended
/// when a poll is ready, or with [`end`](Self::end).
#[derive(Debug, Default)]
pub(crate) struct TimedRegistration(Option<Registered>);

#[derive(Debug)]
struct Registered {
    registration: Registration,
    until: Option<Instant>,
    timers: [Option<Instant>; 2],
}

impl TimedRegistration {
    pub(crate) fn is_registered(&self) -> bool {
        self.0.is_some()
    }

    /// The source's next item, until `until` at most. Whoever is not registered has looked at the
    /// source just now.
    #[inline]
    pub(crate) fn poll<S: TimedSource>(
        &mut self,
        event_loop: &EventLoop,
        kind: WaiterKind,
        source: &mut S,
        until: Option<Instant>,
        context: &mut Context<'_>,
    ) -> Poll<Result<S::Item>> {
        loop {
            let timers = source.timers();
            let is_other = |known: &Registered| known.until != until || known.timers != timers;
            if self.0.as_ref().is_some_and(is_other) {
                self.end(event_loop, |key| source.deregister(key));
            }
            let moments = [until, timers[0], timers[1]];
            let by = moments.into_iter().flatten().min();
            let registered = self.0.get_or_insert_with(|| Registered {
                registration: Registration::after_look(event_loop, kind, by),
                until,
                timers,
            });
            let polled = registered.registration.poll(event_loop, source, context);
            if polled.is_pending() {
                return Poll::Pending;
            }
            self.end(event_loop, |key| source.deregister(key));
            match polled {
                Poll::Ready(Err(Error::DeadlinePassed)) if until != by => source.timer_due(by),
                polled => return polled,
            }
        }
    }

    /// Ends the wait, as [`Registration::deregister`] does.
    pub(crate) fn end(
        &mut self,
        event_loop: &EventLoop,
        deregister: impl FnOnce(u64),
    ) -> Option<Waker> {
        let mut registered = self.0.take()?;
        registered.registration.deregister(event_loop, deregister)
    }
}
