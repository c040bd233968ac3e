//! Threads that wait: each runs its own future, and one of them leads.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use super::parked::NOT_PARKED;
use super::parker::Parker;
use super::source::{Drained, MAX_EVENTS, ReadySources};
use super::{EventLoop, EventQueue, Leader, State};
use crate::sync::{AtomicBool, MutexGuard, Ordering};

/// How often a thread that leaves reads for others, who may call again and again meanwhile. Those who
/// do so in the last pass read for themselves.
const MAX_PASSES: usize = 8;

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
    /// Unique in its event loop.
    number: u64,
    is_woken: AtomicBool,
    /// It reads the sources, and looks whether it was woken afterwards.
    is_reading: AtomicBool,
    /// Where it is among the [parked](super::parked) threads. Changes under the lock of the
    /// event loop's state only, so that no schedule depends on it.
    pub(super) index: AtomicUsize,
    /// It is parked, and was woken or is to lead.
    parker: Parker,
    event_loop: Weak<EventLoop>,
}

impl ThreadWaker {
    pub(super) fn new(number: u64, event_loop: Weak<EventLoop>) -> Arc<Self> {
        Arc::new(Self {
            number,
            is_woken: AtomicBool::new(false),
            is_reading: AtomicBool::new(false),
            index: AtomicUsize::new(NOT_PARKED),
            parker: Parker::default(),
            event_loop,
        })
    }

    pub(super) fn set_index(&self, index: usize) {
        self.index.store(index, Ordering::Relaxed);
    }

    pub(super) fn is_parked(&self) -> bool {
        self.index.load(Ordering::Relaxed) != NOT_PARKED
    }

    pub(super) fn unpark(&self) {
        self.parker.unpark();
    }

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
            event_loop.unpark(self);
        }
    }
}

/// Lets another thread lead, also when a caller's queue pair panics.
struct LeaderGuard<'a> {
    event_loop: &'a EventLoop,
    thread: &'a ThreadWaker,
    has_stepped_down: bool,
}

impl<'a> LeaderGuard<'a> {
    fn step_down(mut self) -> MutexGuard<'a, State> {
        self.has_stepped_down = true;
        self.release()
    }

    fn release(&self) -> MutexGuard<'a, State> {
        // Before the thread looks whether it was woken: whoever sees the flag set has woken it
        // before that.
        self.thread.is_reading.store(false, Ordering::SeqCst);
        let mut state = self.event_loop.state();
        state.leader = Leader::None;
        state.is_last_pass = false;
        state
    }
}

impl Drop for LeaderGuard<'_> {
    fn drop(&mut self) {
        if !self.has_stepped_down {
            let mut state = self.release();
            // Not all that was ready may have been read.
            state.is_pass_due = true;
            let is_pass_due = state.take_pass_due();
            hand_over(state);
            if is_pass_due {
                self.event_loop.have_others_call();
            }
        }
    }
}

/// Has a parked thread lead if no other one does, after a thread that waits no more.
fn hand_over(state: MutexGuard<'_, State>) {
    let next = match state.leader {
        Leader::None => state.parked.any().cloned(),
        Leader::Awake | Leader::Asleep(_) => None,
    };
    drop(state);
    if let Some(next) = next {
        next.unpark();
    }
}

impl EventLoop {
    pub(crate) fn waiting_thread(self: &Arc<Self>) -> WaitingThread {
        let spare = self.spare_threads().pop();
        spare.unwrap_or_else(|| {
            let state = ThreadWaker::new(self.new_key(), Arc::downgrade(self));
            let waker = Waker::from(Arc::clone(&state));
            WaitingThread { state, waker }
        })
    }

    /// Keeps what a thread has waited with, for the next one.
    pub(crate) fn keep_thread(&self, thread: WaitingThread) {
        self.spare_threads().push(thread);
    }

    fn spare_threads(&self) -> MutexGuard<'_, Vec<WaitingThread>> {
        self.spare_threads.lock()
    }

    /// Returns when the thread was woken, or the event loop has failed more often than
    /// `failures`. Leads while no other thread does.
    pub(crate) fn park(&self, thread: &WaitingThread, failures: u64) {
        let thread = &thread.state;
        let mut state = self.state();
        while !thread.take_woken() && self.failures() == failures {
            state = if self.has_leader(&state) {
                self.wait_as_follower(state, thread)
            } else {
                self.run_as_leader(state, thread, true).0
            };
        }
        hand_over(self.read_for_others(state, thread));
    }

    /// In a forked child, the leader is a thread of the parent.
    fn has_leader(&self, state: &State) -> bool {
        state.leader != Leader::None && !self.is_in_child()
    }

    /// Whether this is a forked child of the process that has opened it.
    pub(crate) fn is_in_child(&self) -> bool {
        std::process::id() != self.process
    }

    /// Reads what there is, for a caller that never waits.
    pub(crate) fn run_without_waiting(self: &Arc<Self>) {
        if self.is_blocking() {
            self.run_once();
        } else {
            self.run_if_due();
        }
    }

    /// Reads the sources that are readable, without sleeping. If another thread leads, that one
    /// does so before it leaves, or a later leader does. Returns whether the caller must call again
    /// for what is left.
    pub(crate) fn run_once(self: &Arc<Self>) -> bool {
        let thread = self.waiting_thread();
        let mut state = self.state();
        let is_more;
        if self.has_leader(&state) {
            is_more = state.is_last_pass;
            state.is_pass_due |= !is_more;
        } else {
            (state, is_more) = self.run_as_leader(state, &thread.state, false);
            state = self.read_for_others(state, &thread.state);
        }
        hand_over(state);
        self.keep_thread(thread);
        is_more
    }

    /// [`read_events_for`](Self::read_events_for) on a thread, unless another one leads.
    pub(super) fn read_events_on_thread(self: &Arc<Self>, queue: &EventQueue) {
        let thread = self.waiting_thread();
        let mut state = self.state();
        if !self.has_leader(&state) {
            state.leader = Leader::Awake;
            drop(state);
            let guard = LeaderGuard {
                event_loop: self,
                thread: &thread.state,
                has_stepped_down: false,
            };
            let drained = self.cm.drain_for(queue);
            let is_more = drained.map(|drained| drained == Drained::Share);
            let is_more = is_more.unwrap_or_else(|error| {
                self.fail(error);
                true
            });
            state = guard.step_down();
            state.is_pass_due |= is_more;
            state = self.read_for_others(state, &thread.state);
        }
        hand_over(state);
        self.keep_thread(thread);
    }

    /// Reads what was there for callers that do not wait, before a leader leaves: a caller that has
    /// a descriptor with edges hears nothing more of it. The next leader reads it, if there is one.
    fn read_for_others<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        thread: &'a ThreadWaker,
    ) -> MutexGuard<'a, State> {
        for pass in 1..=MAX_PASSES {
            if self.has_leader(&state) || !state.take_pass_due() {
                return state;
            }
            state.is_last_pass = pass == MAX_PASSES;
            let is_more;
            (state, is_more) = self.run_as_leader(state, thread, false);
            state.is_pass_due |= is_more;
        }
        if !self.has_leader(&state) && state.take_pass_due() {
            drop(state);
            self.have_others_call();
            state = self.state();
        }
        state
    }

    /// Wakes all callers that do not wait: what they wait for depends on the event channel.
    fn have_others_call(&self) {
        self.channel().waker().wake();
    }

    /// Waits until the thread was woken or is to lead.
    fn wait_as_follower<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        thread: &Arc<ThreadWaker>,
    ) -> MutexGuard<'a, State> {
        state.parked.add(thread);
        drop(state);
        thread.parker.park();
        let mut state = self.state();
        state.parked.remove(thread);
        state
    }

    /// Sleeps, if it may, until a source is readable or the first timer is due, reads the
    /// sources, and steps down. Returns whether a source may have more than its share. The clock is
    /// read once: after a sleep that a source has ended, the next leader looks at the timers.
    fn run_as_leader<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        thread: &'a ThreadWaker,
        sleeps: bool,
    ) -> (MutexGuard<'a, State>, bool) {
        // Under one lock with the reads of `is_woken` and the timers: a thread that changes
        // either from here on wakes the leader, unless the leader reads and looks at
        // `is_woken` afterwards.
        state.leader = Leader::Asleep(thread.number);
        let first = state.timers.first();
        drop(state);
        let guard = LeaderGuard {
            event_loop: self,
            thread,
            has_stepped_down: false,
        };
        let timer = first.map(|first| (first, self.now()));
        let is_due = timer.is_some_and(|(first, now)| first <= now);
        let mut ready = ReadySources::default();
        let waited = if is_due || !sleeps {
            // What came in time is read in time.
            self.sources.readable(&mut ready)
        } else {
            self.sources.wait(timer, &mut ready)
        };
        let mut state = self.state();
        state.leader = Leader::Awake;
        let max_events = if sleeps && !is_due {
            state.expected_events()
        } else {
            // Who waits for the descriptor is not known, nor what came in time.
            MAX_EVENTS
        };
        drop(state);
        thread.is_reading.store(true, Ordering::Relaxed);
        // What is left is read by the next leader, which does not sleep then.
        let drained = waited.and_then(|()| self.sources.drain(&ready, max_events));
        // A device that was removed is read several times until it says so, and a descriptor with
        // edges does not tell of it again.
        let drained = drained.and_then(|is_more| {
            let may_be_left = !sleeps && !ready.is_empty();
            Ok(is_more || may_be_left && self.sources.is_any_readable()?)
        });
        let is_more = drained.unwrap_or_else(|error| {
            self.fail(error);
            // The source may not have been read.
            true
        });
        match timer {
            Some((_, now)) if is_due => self.fire_timers_at(now),
            Some(_) if ready.is_empty() => self.fire_timers(),
            _ => {}
        }
        (guard.step_down(), is_more)
    }

    /// A thread was woken: one that is parked, or the sleeping leader. Any other one looks
    /// before it waits.
    fn unpark(&self, thread: &ThreadWaker) {
        let state = self.state();
        let (leader, is_parked) = (state.leader, thread.is_parked());
        drop(state);
        if is_parked {
            thread.unpark();
        } else if leader == Leader::Asleep(thread.number) {
            self.channel().waker().wake();
        }
    }
}
