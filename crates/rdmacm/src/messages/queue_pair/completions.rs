//! Polling the completion queues.

use std::sync::atomic::Ordering;

use parking_lot::MutexGuard;
use rdmacm_core::{QueuePair as _, Transport};

use rdmacm_verbs::{Completion, Error, Result, SgList, WorkId};

use super::MessageQueuePair;
use crate::data::{CqKind, Failure};
use crate::event_loop::{EventLoop, WaitingThread};
use crate::messages::deferred::Deferred;
use crate::messages::state::{Arrival, State};
use crate::messages::waiters::Interest;

impl MessageQueuePair {
    /// Handles all completions that there are.
    pub(crate) fn poll(&self) {
        self.poll_with(|_| ());
    }

    /// Handles all completions that there are, and looks at the state then.
    pub(crate) fn poll_with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        let mut deferred = Deferred::default();
        let mut state = self.state();
        self.complete_all(&mut state, &mut deferred);
        let outcome = look(&mut state);
        drop(state);
        deferred.run();
        outcome
    }

    /// The next message, if one has arrived.
    #[inline]
    pub(in crate::messages) fn next_arrival(&self) -> Option<Arrival> {
        self.next_arrival_in(self.state())
    }

    /// Removes a thread that waits for a message, and takes the next one if it has arrived.
    pub(in crate::messages) fn next_arrival_of(
        &self,
        key: u64,
        thread: WaitingThread,
        event_loop: &EventLoop,
    ) -> Option<Arrival> {
        let mut state = self.state();
        // Two threads may have waited.
        let spare = state.spare_thread.replace(thread);
        let waiter = state.waiters.remove(Interest::ReceiveReady, key);
        // Of several messages, this thread was woken for all.
        let is_more = state.arrived.len() > 1;
        let next = state
            .waiters
            .first(Interest::ReceiveReady)
            .filter(|_| is_more);
        let next = next.cloned();
        let arrival = self.next_arrival_in(state);
        drop(waiter);
        if let Some(spare) = spare {
            event_loop.keep_thread(spare);
        }
        if let Some(next) = next {
            next.wake();
        }
        arrival
    }

    #[inline]
    fn next_arrival_in(&self, mut state: MutexGuard<'_, State>) -> Option<Arrival> {
        if self.has_arrivals.load(Ordering::Relaxed) {
            if let Some(arrival) = state.take_arrival() {
                return Some(arrival);
            }
            self.has_arrivals.store(false, Ordering::Relaxed);
        }
        if self.is_receiving_over(&state) {
            return None;
        }
        let mut polled = self.receives.poll();
        if let Ok(Some(completion)) = &mut polled {
            self.receive_requests.completed();
            if let Ok(arrival) = state.receive(completion) {
                // Nothing is left in it to drop.
                std::mem::forget(polled);
                return Some(arrival);
            }
        }
        if !matches!(polled, Ok(None)) {
            receive_failed(state, polled);
        }
        None
    }

    /// Handles receive requests that have completed, until `take` returns something.
    pub(in crate::messages) fn poll_arrivals<T>(
        &self,
        mut take: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        let mut deferred = Deferred::default();
        let mut state = self.state();
        let mut taken = take(&mut state);
        while taken.is_none() && self.complete_one(CqKind::Receives, &mut state, &mut deferred) {
            taken = take(&mut state);
        }
        drop(state);
        deferred.run();
        taken
    }

    /// The memory of a request that a caller waits for, if it has succeeded.
    pub(in crate::messages) fn take_success(&self, work: WorkId) -> Option<SgList> {
        let mut deferred = Deferred::default();
        let mut state = self.state();
        let mut succeeded = state.take_success(work);
        while succeeded.is_none() && self.complete_one(CqKind::Sends, &mut state, &mut deferred) {
            succeeded = state.take_success(work);
        }
        drop(state);
        deferred.run();
        succeeded
    }

    /// Whether requests that have completed are handled before another one is posted: several
    /// together, once half of the room is taken. A queue pair that fails completes its receive
    /// requests too, so a caller who only sends learns of it by the next message.
    #[inline]
    pub(super) fn is_due(&self, state: &State) -> bool {
        state.is_half_full()
            || state.failure().is_some()
            || !state.is_idle() && self.has_completed_receives()
    }

    /// Handles requests that have completed. May release the lock meanwhile, to wake others.
    #[inline(never)]
    pub(super) fn complete_sends<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
    ) -> MutexGuard<'a, State> {
        let mut deferred = Deferred::default();
        self.complete_many_sends(&mut state, &mut deferred);
        // siw takes requests after the end of the connection: only its receive requests show it.
        let is_iwarp = self.queue_pair.transport() == Transport::IWarp;
        let is_over = || is_iwarp && self.has_completed_receives();
        if state.failure().is_some() || is_over() {
            self.complete_all(&mut state, &mut deferred);
        }
        if deferred.is_due() {
            drop(state);
            deferred.run();
            return self.state();
        }
        state
    }

    /// Handles the oldest requests that have completed, and more while half of the room is taken.
    fn complete_many_sends(&self, state: &mut State, deferred: &mut Deferred) {
        let mut completions = std::mem::take(&mut state.completions);
        loop {
            // After a panic in between there is no room left.
            let limit = completions.capacity().max(1);
            let polled = self.sends.poll_many(&mut completions, limit);
            for completion in &mut completions {
                state.complete_request(completion, deferred);
            }
            // Nothing is left in them to drop.
            completions.drain(..).for_each(std::mem::forget);
            let may_be_more = match polled {
                Ok(count) => count == limit,
                Err(error) => poll_failed(error, state, deferred),
            };
            if !may_be_more || !state.is_half_full() {
                break;
            }
        }
        state.completions = completions;
    }

    /// Whether there is a message or the end of the connection, most of the time.
    #[inline]
    pub(in crate::messages) fn may_have_arrivals(&self) -> bool {
        self.watch_arrivals()()
    }

    /// As [`may_have_arrivals`](Self::may_have_arrivals), for a caller that looks again and again
    /// until somebody polls.
    #[inline]
    pub(in crate::messages) fn watch_arrivals(&self) -> impl Fn() -> bool {
        let (arrived, receives) = (&self.has_arrivals, self.receives.watch());
        move || arrived.load(Ordering::Relaxed) || receives.may_have_completions()
    }

    /// Whether there is a message or the end of the connection to poll for, most of the time.
    #[inline]
    fn has_completed_receives(&self) -> bool {
        self.receives.may_have_completions()
    }

    fn complete_all(&self, state: &mut State, deferred: &mut Deferred) {
        self.complete(CqKind::Sends, state, deferred);
        self.complete(CqKind::Receives, state, deferred);
        if state.failure().is_some() {
            // The reason, if what was polled are consequences.
            self.complete(CqKind::Sends, state, deferred);
        }
    }

    /// Handles what has completed in one of the queues.
    fn complete(&self, side: CqKind, state: &mut State, deferred: &mut Deferred) {
        // Without requests there is nothing to poll for, unless siw completes one twice.
        while side == CqKind::Receives || !state.is_idle() || state.failure().is_some() {
            if !self.complete_one(side, state, deferred) {
                return;
            }
        }
    }

    /// Whether receive requests need not be polled for any more: one has failed, and the device
    /// flushes all that follow. If the device is gone, the poll after the last one says so.
    #[inline]
    fn is_receiving_over(&self, state: &State) -> bool {
        state.has_receive_failed() && !self.device.context().is_closed()
    }

    /// Handles one completion. Returns whether there may be more.
    #[inline]
    pub(super) fn complete_one(
        &self,
        side: CqKind,
        state: &mut State,
        deferred: &mut Deferred,
    ) -> bool {
        if side == CqKind::Receives && self.is_receiving_over(state) {
            return false;
        }
        match self.queue(side).poll() {
            Ok(Some(mut completion)) => {
                match side {
                    CqKind::Sends => state.complete_request(&mut completion, deferred),
                    CqKind::Receives => {
                        self.receive_requests.completed();
                        // First: a waker that is cloned may panic.
                        self.has_arrivals.store(true, Ordering::Relaxed);
                        state.complete_receive(&mut completion, deferred);
                    }
                }
                true
            }
            Ok(None) => false,
            Err(error) => poll_failed(error, state, deferred),
        }
    }

    /// Nothing more can be transferred.
    pub(crate) fn fail(&self, failure: Failure) {
        let mut deferred = Deferred::default();
        self.state().fail(failure, &mut deferred);
        deferred.run();
    }
}

/// Handles a receive request that has failed, or a poll that has.
#[cold]
fn receive_failed(mut state: MutexGuard<'_, State>, polled: Result<Option<Completion>>) {
    let mut deferred = Deferred::default();
    let memory = match polled {
        Ok(completion) => completion.map(|completion| {
            if let Err(error) = completion.result() {
                state.fail_receive(error, &mut deferred);
            }
            completion.sg_list
        }),
        Err(error) => {
            poll_failed(error, &mut state, &mut deferred);
            None
        }
    };
    drop(state);
    deferred.run();
    // Not under the lock: dropping the last reference to memory is a system call.
    drop(memory);
}

/// Whether there may be more completions after an error.
#[cold]
fn poll_failed(error: Error, state: &mut State, deferred: &mut Deferred) -> bool {
    // It was completed before.
    let is_harmless = matches!(error, Error::Stray { .. }) && state.may_complete_twice();
    if !is_harmless {
        state.fail(Failure::Device(error), deferred);
    }
    is_harmless
}
