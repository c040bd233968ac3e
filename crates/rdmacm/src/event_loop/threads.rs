//! Threads that wait: each runs its own future, and one of them leads.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use super::source::ReadySources;
use super::{EventLoop, Leader};
use crate::sync::{AtomicBool, MutexGuard, Ordering};

/// Runs a future of this event loop to completion on the calling thread.
pub(crate) fn block_on<F: Future>(event_loop: &Arc<EventLoop>, future: F) -> F::Output {
    let mut future = pin!(future);
    let thread = event_loop.waiting_thread();
    let mut context = Context::from_waker(&thread.waker);
    let output = loop {
        let failures = event_loop.failures();
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            break output;
        }
        event_loop.park(&thread, failures);
    };
    event_loop.keep_thread(thread);
    output
}

/// A thread that waits.
#[derive(Debug)]
pub(crate) struct WaitingThread {
    state: Arc<ThreadWaker>,
    waker: Waker,
}

impl WaitingThread {
    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }
}

/// Wakes a thread that waits. Another thread may have it later: a wake-up that is late makes
/// that one look once too often.
#[derive(Debug)]
pub(super) struct ThreadWaker {
    is_woken: AtomicBool,
    /// It reads the sources, and looks whether it was woken afterwards.
    is_reading: AtomicBool,
    event_loop: Weak<EventLoop>,
}

impl ThreadWaker {
    fn take_woken(&self) -> bool {
        self.is_woken.swap(false, Ordering::SeqCst)
    }
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Before the other flag is read: see `LeaderGuard`.
        self.is_woken.store(true, Ordering::SeqCst);
        if self.is_reading.load(Ordering::SeqCst) {
            return;
        }
        if let Some(event_loop) = self.event_loop.upgrade() {
            event_loop.unpark();
        }
    }
}

/// Lets another thread lead, also when a caller's queue pair panics.
struct LeaderGuard<'a> {
    event_loop: &'a EventLoop,
    thread: &'a ThreadWaker,
}

impl Drop for LeaderGuard<'_> {
    fn drop(&mut self) {
        // Before the thread looks whether it was woken: whoever sees the flag set has woken it
        // before that.
        self.thread.is_reading.store(false, Ordering::SeqCst);
        let mut state = self.event_loop.state();
        state.leader = Leader::None;
        let parked = state.parked;
        drop(state);
        self.event_loop.notify(parked);
    }
}

impl EventLoop {
    pub(crate) fn waiting_thread(self: &Arc<Self>) -> WaitingThread {
        let spare = self.spare_threads().pop();
        spare.unwrap_or_else(|| {
            let state = Arc::new(ThreadWaker {
                is_woken: AtomicBool::new(false),
                is_reading: AtomicBool::new(false),
                event_loop: Arc::downgrade(self),
            });
            let waker = Waker::from(Arc::clone(&state));
            WaitingThread { state, waker }
        })
    }

    /// Keeps what a thread has waited with, for the next one.
    pub(crate) fn keep_thread(&self, thread: WaitingThread) {
        self.spare_threads().push(thread);
    }

    fn spare_threads(&self) -> MutexGuard<'_, Vec<WaitingThread>> {
        self.spare_threads
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when the thread was woken, or the event loop has failed more often than
    /// `failures`. Leads while no other thread does.
    pub(crate) fn park(&self, thread: &WaitingThread, failures: u64) {
        loop {
            let mut state = self.state();
            if thread.state.take_woken() || self.failures() != failures {
                return;
            }
            if state.leader == Leader::None {
                // Under one lock with the reads of `is_woken` and the timers: a thread that
                // changes either from here on wakes the leader, unless the leader reads and
                // looks at `is_woken` afterwards.
                state.leader = Leader::Asleep;
                let until = state.timers.first();
                drop(state);
                self.lead(&thread.state, until);
                if thread.state.take_woken() {
                    return;
                }
            } else {
                state.parked += 1;
                let changed = self.leader_changed.wait(state);
                changed.unwrap_or_else(PoisonError::into_inner).parked -= 1;
            }
        }
    }

    /// Sleeps until a source is readable or the first timer is due, reads the sources, and
    /// steps down. The clock is read once: after a sleep that a source has ended, the next
    /// leader looks at the timers.
    fn lead(&self, thread: &ThreadWaker, first: Option<Instant>) {
        let _guard = LeaderGuard {
            event_loop: self,
            thread,
        };
        let timer = first.map(|first| (first, self.now()));
        let is_due = timer.is_some_and(|(first, now)| first <= now);
        let mut ready = ReadySources::default();
        let waited = if is_due {
            // What came in time is read in time.
            self.sources.readable(&mut ready)
        } else {
            self.sources.wait(timer, &mut ready)
        };
        let mut state = self.state();
        state.leader = Leader::Awake;
        let max_events = state.expected_events();
        drop(state);
        thread.is_reading.store(true, Ordering::Relaxed);
        // What is left is read by the next leader, which does not sleep then.
        let drained = waited.and_then(|()| self.sources.drain(&ready, max_events));
        if let Err(error) = drained {
            self.fail(error);
        }
        match timer {
            Some((_, now)) if is_due => self.fire_timers_at(now),
            Some(_) if ready.is_empty() => self.fire_timers(),
            _ => {}
        }
    }

    /// A thread was woken: the sleeping leader, or one that waits for the leader to step
    /// down.
    fn unpark(&self) {
        let state = self.state();
        let (leader, parked) = (state.leader, state.parked);
        drop(state);
        self.notify(parked);
        if leader == Leader::Asleep {
            self.channel().waker().wake();
        }
    }

    /// Wakes the parked threads. Without any, that would be a system call for nothing.
    fn notify(&self, parked: usize) {
        if parked > 0 {
            self.leader_changed.notify_all();
        }
    }
}
