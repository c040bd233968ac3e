//! An asynchronous runtime that runs the event loop.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Weak;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use super::{Drained, EventLoop, EventQueue, MAX_EVENTS, waker_fn};
use crate::runtime::Reactor;
use crate::sync::{Mutex, MutexGuard, Ordering};

/// What a runtime watches for an event loop, with the event loop's own waker, which wakes a task
/// when the runtime has found something to do: it does not matter which task polled last.
pub(super) struct RuntimeRegistration {
    reactor: Box<dyn Reactor>,
    waker: Waker,
    /// The time of the runtime's timer. Not locked while sources are read.
    alarm: Mutex<Option<Instant>>,
}

impl RuntimeRegistration {
    pub(super) fn new(reactor: Box<dyn Reactor>, event_loop: Weak<EventLoop>) -> Self {
        Self {
            reactor,
            waker: waker_fn(move || {
                if let Some(event_loop) = event_loop.upgrade() {
                    event_loop.due.store(true, Ordering::Release);
                    event_loop.wake_runner();
                }
            }),
            alarm: Mutex::default(),
        }
    }

    fn alarm(&self) -> MutexGuard<'_, Option<Instant>> {
        self.alarm.lock()
    }
}

/// Whether a task reads the sources. Other tasks do not wait for it: they request another
/// drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum DrainState {
    #[default]
    Idle,
    Draining,
    /// Draining, and to be repeated.
    Requested,
}

/// The task that reads the sources. When it is dropped, another drain is due if one was
/// requested, or if a caller's queue pair panicked.
struct DrainGuard<'a> {
    event_loop: &'a EventLoop,
    is_done: bool,
}

impl<'a> DrainGuard<'a> {
    fn begin(event_loop: &'a EventLoop) -> Option<Self> {
        let mut state = event_loop.state();
        if state.drain != DrainState::Idle {
            state.drain = DrainState::Requested;
            return None;
        }
        state.drain = DrainState::Draining;
        Some(Self {
            event_loop,
            is_done: false,
        })
    }
}

impl Drop for DrainGuard<'_> {
    fn drop(&mut self) {
        let drain = std::mem::take(&mut self.event_loop.state().drain);
        if drain == DrainState::Requested || !self.is_done {
            self.event_loop.due.store(true, Ordering::Release);
            if self.is_done {
                self.event_loop.wake_runner();
            } else {
                // After a panic, which may be that of the same waker: a second one would abort the
                // process.
                let _ = catch_unwind(AssertUnwindSafe(|| self.event_loop.wake_runner()));
            }
        }
    }
}

impl EventLoop {
    /// Whether the runtime has found something to do.
    pub(super) fn is_due(&self) -> bool {
        self.due.load(Ordering::Acquire)
    }

    /// Reads the sources and fires timers if the runtime has found something to do.
    pub(super) fn run_if_due(&self) {
        if let Some(runtime) = self.runtime.as_ref().filter(|_| self.take_due()) {
            self.run(runtime);
        }
    }

    /// [`read_events_for`](Self::read_events_for) in a task, unless another one reads.
    pub(super) fn read_events_in_task(&self, queue: &EventQueue) {
        let Some(mut guard) = DrainGuard::begin(self) else {
            return;
        };
        match self.cm.drain_for(queue) {
            Ok(Drained::Open | Drained::Closed) => {}
            Ok(Drained::Share) => {
                self.due.store(true, Ordering::Release);
                self.wake_runner();
            }
            Err(error) => self.fail(error),
        }
        guard.is_done = true;
    }

    /// Makes sure that the runtime wakes a waiter when there is something to do.
    pub(super) fn ensure_wake_up(&self) {
        let Some(runtime) = &self.runtime else {
            return;
        };
        let first = self.next_alarm();
        let oversleeps = first.is_some_and(|first| {
            let alarm = runtime.alarm();
            alarm.is_none_or(|at| first < at)
        });
        if oversleeps || self.take_due() {
            self.run(runtime);
        }
    }

    /// When a timer is due, or a simulated kernel has something to do.
    fn next_alarm(&self) -> Option<Instant> {
        let next = [self.next_timer(), self.channel().next_due()];
        next.into_iter().flatten().min()
    }

    fn take_due(&self) -> bool {
        self.due.swap(false, Ordering::AcqRel)
    }

    /// Reads until the runtime knows that no source is readable or a share is used up, and
    /// sets the alarm for the first timer. What has come is mostly drained at once, and the
    /// second time finds that nothing is left; what is left then is read after other tasks
    /// have run.
    fn run(&self, runtime: &RuntimeRegistration) {
        let Some(mut guard) = DrainGuard::begin(self) else {
            return;
        };
        let RuntimeRegistration { reactor, waker, .. } = runtime;
        let mut context = Context::from_waker(waker);
        let mut read = || {
            for max_events in [self.expected_events(), MAX_EVENTS] {
                match self.drain(max_events) {
                    Some(true) => {}
                    Some(false) => return ControlFlow::Continue(()),
                    None => break,
                }
            }
            ControlFlow::Break(())
        };
        if let Poll::Ready(Err(error)) = reactor.poll_read(&mut context, &mut read) {
            // Without a number if the runtime has shut down, whose timers panic: all waiters learn
            // of the failure.
            let errno = error.raw_os_error().unwrap_or(libc::ECANCELED);
            self.fail(rdmacm_core::Error::Wait { errno });
        } else {
            self.set_alarm(runtime, &mut context);
        }
        guard.is_done = true;
    }

    /// Fires timers, and has the runtime wake a waiter when the next one is due. An alarm that
    /// is set already and goes off earlier stays: waits with the same time limit, one after
    /// the other, set it once in that time.
    fn set_alarm(&self, runtime: &RuntimeRegistration, context: &mut Context<'_>) {
        let mut has_drained = false;
        loop {
            // Without the lock: it wakes tasks.
            self.fire_timers_after(|| {
                // What came in time is read in time, though the runtime need not have noticed yet.
                if !std::mem::replace(&mut has_drained, true) {
                    self.drain(MAX_EVENTS);
                }
            });
            let mut alarm = runtime.alarm();
            let Some(first) = self.next_alarm() else {
                if alarm.take().is_some() {
                    runtime.reactor.stop_timer();
                }
                break;
            };
            let at = alarm.map_or(first, |at| at.min(first));
            if runtime.reactor.poll_timer(context, at).is_pending() {
                *alarm = Some(at);
                break;
            }
            *alarm = None;
            if at < first {
                // It was that of a waiter that has gone.
                continue;
            }
            // A simulated clock moves on request only.
            self.channel().advance_to(first);
            if self.now() < first {
                drop(alarm);
                // The runtime's clock is ahead of the channel's: other tasks run first.
                runtime.waker.wake_by_ref();
                break;
            }
        }
    }
}
