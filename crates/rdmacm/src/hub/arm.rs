//! A runtime's part in the waiting.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use super::Hub;
use crate::reactor::{Reactor, Sleep};

/// What the runtime watches for a hub, under the hub's own waker: so it does
/// not matter which task polled last.
pub(super) struct Armed {
    reactor: Box<dyn Reactor>,
    waker: Waker,
    /// Not locked while events are read.
    alarm: Mutex<Option<Alarm>>,
}

type Alarm = (Instant, Sleep);

impl Armed {
    pub(super) fn new(reactor: Box<dyn Reactor>, hub: Weak<Hub>) -> Self {
        Self {
            reactor,
            waker: Arc::new(Notice(hub)).into(),
            alarm: Mutex::default(),
        }
    }

    /// Set or not set between any two statements, so a panic elsewhere while it was
    /// locked leaves nothing broken.
    fn alarm(&self) -> MutexGuard<'_, Option<Alarm>> {
        self.alarm.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes one who waits when the runtime has something for the hub.
struct Notice(Weak<Hub>);

impl Wake for Notice {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(hub) = self.0.upgrade() {
            hub.due.store(true, Ordering::Release);
            hub.pass_on();
        }
    }
}

/// Whether a task reads. Nobody waits for it to end: whoever comes meanwhile asks for
/// another turn and goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Turn {
    #[default]
    Free,
    Taken,
    /// Taken, and there is to be another.
    Wanted,
}

/// The turn of one task. What was asked for meanwhile is due at its end, and
/// everything where a caller's queue pair panics.
struct Watching<'a> {
    hub: &'a Hub,
    is_done: bool,
}

impl<'a> Watching<'a> {
    fn begin(hub: &'a Hub) -> Option<Self> {
        let mut state = hub.state();
        if state.turn != Turn::Free {
            state.turn = Turn::Wanted;
            return None;
        }
        state.turn = Turn::Taken;
        Some(Self {
            hub,
            is_done: false,
        })
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        let turn = std::mem::take(&mut self.hub.state().turn);
        if turn == Turn::Wanted || !self.is_done {
            self.hub.due.store(true, Ordering::Release);
            self.hub.pass_on();
        }
    }
}

impl Hub {
    /// Takes the turn if it is anyone's: reads, hands out, rings.
    pub(super) fn take_turn(&self) {
        if let Some(armed) = self.armed.as_ref().filter(|_| self.is_due()) {
            self.watch(armed);
        }
    }

    /// Makes sure that the runtime wakes someone when there is something to do.
    pub(super) fn arm(&self) {
        let Some(armed) = &self.armed else {
            return;
        };
        let first = self.first_timer();
        let late = first.is_some_and(|first| {
            let alarm = armed.alarm();
            alarm.as_ref().is_none_or(|(at, _)| first < *at)
        });
        if late || self.is_due() {
            self.watch(armed);
        }
    }

    fn is_due(&self) -> bool {
        self.due.swap(false, Ordering::AcqRel)
    }

    /// Reads until the runtime knows that there is nothing more or the turn's share is
    /// used up, and sets the alarm for the first timer.
    fn watch(&self, armed: &Armed) {
        let Some(mut watching) = Watching::begin(self) else {
            return;
        };
        let Armed { reactor, waker, .. } = armed;
        let mut context = Context::from_waker(waker);
        if let Poll::Ready(Err(error)) = reactor.poll_read(&mut context, &mut || self.drain()) {
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            self.fail(rdmacm_core::Error::Wait { errno });
        }
        self.set_alarm(armed, &mut context);
        watching.is_done = true;
    }

    /// Rings, and sees to it that the runtime wakes someone for the next timer.
    fn set_alarm(&self, armed: &Armed, context: &mut Context<'_>) {
        let mut alarm = armed.alarm();
        loop {
            self.ring();
            let Some(first) = self.first_timer() else {
                *alarm = None;
                break;
            };
            if alarm.as_ref().is_none_or(|(at, _)| *at != first) {
                *alarm = Some((first, armed.reactor.sleep_until(first)));
            }
            let Some((_, sleep)) = &mut *alarm else {
                break;
            };
            if sleep.as_mut().poll(context).is_pending() {
                break;
            }
            *alarm = None;
            if self.now() < first {
                // The runtime's clock is ahead of the channel's: others first.
                armed.waker.wake_by_ref();
                break;
            }
        }
    }
}
