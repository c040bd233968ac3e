//! Threads that wait: each runs its own future, and one of them leads.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};

use rdmacm_core::{Deadline, Error};

use super::{EventLoop, Leader};
use crate::sync::{AtomicBool, Ordering};

/// Runs a future of this event loop to completion on the calling thread.
pub(crate) fn block_on<F: Future>(event_loop: &Arc<EventLoop>, future: F) -> F::Output {
    let mut future = pin!(future);
    let thread = Arc::new(ThreadWaker {
        is_woken: AtomicBool::new(false),
        event_loop: Arc::downgrade(event_loop),
    });
    let waker = Waker::from(Arc::clone(&thread));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        event_loop.park(&thread);
    }
}

/// Wakes a thread that waits.
struct ThreadWaker {
    is_woken: AtomicBool,
    event_loop: Weak<EventLoop>,
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        if let Some(event_loop) = self.event_loop.upgrade() {
            event_loop.unpark();
        }
    }
}

/// Lets another thread lead, also when a caller's queue pair panics.
struct LeaderGuard<'a>(&'a EventLoop);

impl Drop for LeaderGuard<'_> {
    fn drop(&mut self) {
        self.0.state().leader = Leader::None;
        self.0.leader_changed.notify_all();
    }
}

impl EventLoop {
    /// Returns when the thread was woken. Leads while no other thread does.
    fn park(&self, thread: &ThreadWaker) {
        loop {
            let mut state = self.state();
            if thread.is_woken.swap(false, Ordering::AcqRel) {
                return;
            }
            if state.leader == Leader::None {
                // Under one lock with the reads of `is_woken` and the timers: a thread that
                // changes either from here on wakes the leader.
                state.leader = Leader::Asleep;
                let first = state.timers.first_key_value();
                let until = first.map_or(Deadline::Never, |((at, _), _)| Deadline::At(*at));
                drop(state);
                self.lead(until);
            } else {
                let changed = self.leader_changed.wait(state);
                drop(changed.unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    /// Sleeps until a source is readable or a timer is due, reads the sources, and steps
    /// down.
    fn lead(&self, until: Deadline) {
        let _guard = LeaderGuard(self);
        let woken = self.sources.wait(until);
        self.state().leader = Leader::Awake;
        match woken {
            // At the deadline too: what came in time is read in time. What is left is
            // read by the next leader, which does not sleep then.
            Ok(()) | Err(Error::DeadlinePassed) => {
                let _ = self.drain();
            }
            Err(Error::Woken) => {}
            Err(error) => self.fail(error),
        }
        self.fire_timers();
    }

    /// A thread was woken: the sleeping leader, or one that waits for the leader to step
    /// down.
    fn unpark(&self) {
        let is_asleep = self.state().leader == Leader::Asleep;
        self.leader_changed.notify_all();
        if is_asleep {
            self.channel().waker().wake();
        }
    }
}
