//! Threads that wait: each runs its own future, and one of them leads.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};

use rdmacm_core::{Deadline, Error};

use super::{Hub, Leader};

/// Runs a future of this hub to its end on the calling thread.
pub(crate) fn block_on<F: Future>(hub: &Arc<Hub>, future: F) -> F::Output {
    let mut future = pin!(future);
    let parked = Arc::new(Parked {
        woken: AtomicBool::new(false),
        hub: Arc::downgrade(hub),
    });
    let waker = Waker::from(Arc::clone(&parked));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        hub.park(&parked);
    }
}

/// A thread that waits.
struct Parked {
    woken: AtomicBool,
    hub: Weak<Hub>,
}

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        if let Some(hub) = self.hub.upgrade() {
            hub.stir();
        }
    }
}

/// Lets another lead, also when a caller's queue pair panics.
struct StepDown<'a>(&'a Hub);

impl Drop for StepDown<'_> {
    fn drop(&mut self) {
        self.0.state().leader = Leader::None;
        self.0.changed.notify_all();
    }
}

impl Hub {
    /// Returns when the thread was woken; leads while nobody else does.
    fn park(&self, parked: &Parked) {
        loop {
            let mut state = self.state();
            if parked.woken.swap(false, Ordering::AcqRel) {
                return;
            }
            if state.leader == Leader::None {
                // Under one lock with the look at the timers and at `woken`:
                // whoever changes either from here on wakes the sleeper.
                state.leader = Leader::Asleep;
                let first = state.timers.first_key_value();
                let until = first.map_or(Deadline::Never, |((at, _), _)| Deadline::At(*at));
                drop(state);
                self.lead(until);
            } else {
                let changed = self.changed.wait(state);
                drop(changed.unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    /// Sleeps until there is something to read or a timer is due, hands out what
    /// there is, and steps down.
    fn lead(&self, until: Deadline) {
        let _down = StepDown(self);
        let woken = self.sources.wait(&self.channel, until);
        self.state().leader = Leader::Awake;
        match woken {
            // What came in time is seen in time.
            Ok(()) | Err(Error::DeadlinePassed) => {
                // What is left is the next leader's, who does not sleep then.
                let _ = self.drain();
            }
            Err(Error::Woken) => {}
            Err(error) => self.fail(error),
        }
        self.ring();
    }

    /// A thread was woken: it may be the one that leads and sleeps, or wait for
    /// the one that does.
    fn stir(&self) {
        let asleep = self.state().leader == Leader::Asleep;
        self.changed.notify_all();
        if asleep {
            self.channel.waker().wake();
        }
    }
}
