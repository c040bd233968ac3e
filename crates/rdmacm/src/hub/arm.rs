//! A runtime's part in the waiting.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use super::Hub;
use crate::reactor::{Reactor, Sleep};

/// What the runtime watches for a hub, under the hub's own waker: so it does
/// not matter which task polled last.
pub(super) struct Armed {
    reactor: Box<dyn Reactor>,
    alarm: Option<(Instant, Sleep)>,
    waker: Waker,
}

impl Armed {
    pub(super) fn new(reactor: Box<dyn Reactor>, hub: Weak<Hub>) -> Self {
        Self {
            reactor,
            alarm: None,
            waker: Arc::new(Turn(hub)).into(),
        }
    }
}

/// Wakes one who waits when the runtime has something for the hub.
struct Turn(Weak<Hub>);

impl Wake for Turn {
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

/// Passes the turn on where a caller's queue pair panics.
struct Watching<'a> {
    hub: &'a Hub,
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        self.hub.due.store(true, Ordering::Release);
        self.hub.pass_on();
    }
}

impl Hub {
    /// Takes the turn if it is anyone's: reads, hands out, rings.
    pub(super) fn take_turn(&self) {
        if self.armed.is_some() && self.due.swap(false, Ordering::AcqRel) {
            self.watch();
        }
    }

    /// Makes sure that the runtime wakes someone when there is something to do.
    pub(super) fn arm(&self) {
        let Some(armed) = &self.armed else {
            return;
        };
        let first = self.first_timer();
        let late = {
            let armed = armed.lock().unwrap_or_else(PoisonError::into_inner);
            let alarm = armed.alarm.as_ref().map(|(at, _)| *at);
            first.is_some_and(|first| alarm.is_none_or(|alarm| first < alarm))
        };
        if late || self.due.swap(false, Ordering::AcqRel) {
            self.watch();
        }
    }

    /// Reads until the runtime knows that there is nothing more, and sets the
    /// alarm for the first timer.
    fn watch(&self) {
        let Some(armed) = &self.armed else {
            return;
        };
        let mut armed = armed.lock().unwrap_or_else(PoisonError::into_inner);
        let watching = Watching { hub: self };
        let Armed {
            reactor,
            alarm,
            waker,
        } = &mut *armed;
        let mut context = Context::from_waker(waker);
        if let Poll::Ready(Err(error)) = reactor.poll_read(&mut context, &mut || self.drain()) {
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            self.break_down(rdmacm_core::Error::Wait { errno });
        }
        loop {
            self.ring();
            let Some(first) = self.first_timer() else {
                *alarm = None;
                break;
            };
            if alarm.as_ref().is_none_or(|(at, _)| *at != first) {
                *alarm = Some((first, reactor.sleep_until(first)));
            }
            let Some((_, sleep)) = alarm else {
                break;
            };
            if sleep.as_mut().poll(&mut context).is_pending() {
                break;
            }
            *alarm = None;
            if self.now() < first {
                // The runtime's clock is ahead of the channel's: others first.
                waker.wake_by_ref();
                break;
            }
        }
        std::mem::forget(watching);
    }
}
