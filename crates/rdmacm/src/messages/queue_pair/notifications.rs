//! Notifications of completions, and who waits for them.

use std::sync::Arc;
use std::task::Waker;

use parking_lot::MutexGuard;

use super::MessageQueuePair;
use crate::data::{CqKind, Failure};
use crate::event_loop::{EventLoop, WaitingThread, wake_and_then, waker_fn};
use crate::messages::deferred::Deferred;
use crate::messages::state::{Armed, State};
use crate::messages::waiters::Interest;

impl MessageQueuePair {
    /// Wakes all waiters.
    pub(crate) fn wake_all(&self) {
        let mut deferred = Deferred::default();
        self.state().wake_all(&mut deferred);
        deferred.run();
    }

    /// Wakes all waiters.
    pub(in crate::messages) fn waker(self: &Arc<Self>) -> Waker {
        let queue_pair = Arc::downgrade(self);
        waker_fn(move || {
            if let Some(queue_pair) = queue_pair.upgrade() {
                queue_pair.wake_all();
            }
        })
    }

    /// A completion queue has notified.
    pub(in crate::messages) fn notified(&self, side: CqKind) {
        let mut state = self.state();
        self.set_armed(&mut state, side, false);
        if state.waiters.is_empty() {
            // Whoever comes polls.
            return;
        }
        if side == CqKind::Receives {
            if let Some(waker) = state.waiters.only_receiver().cloned() {
                // It polls, and arms again if it waits again.
                drop(state);
                return waker.wake();
            }
        }
        self.notify(side, state);
    }

    /// Handles completions, and wakes the waiters concerned.
    fn notify(&self, side: CqKind, mut state: MutexGuard<'_, State>) {
        let mut deferred = Deferred::default();
        let waiters = state.waiters.len();
        // A single waiter handles the rest itself, and arms again if it waits again.
        let is_woken = |deferred: &Deferred| waiters == 1 && deferred.wakes();
        while !is_woken(&deferred) && self.complete_one(side, &mut state, &mut deferred) {}
        let others = !is_woken(&deferred);
        drop(state);
        let arm = || {
            if others {
                self.arm(self.state());
            }
        };
        wake_and_then(|| deferred.run(), arm);
    }

    /// Requests notifications of what the waiters wait for. Completions that are there already do
    /// not notify, so all of them are handled, also for those who have found the notification
    /// requested before it was.
    fn arm<'a>(&'a self, mut state: MutexGuard<'a, State>) {
        loop {
            let was_any_posted = self.receive_requests.is_any_posted();
            let wanted = state.notifications(was_any_posted);
            let sends = wanted.sends && self.set_armed(&mut state, CqKind::Sends, true);
            let receives = wanted.receives && self.set_armed(&mut state, CqKind::Receives, true);
            drop(state);
            for (side, arms) in [(CqKind::Sends, sends), (CqKind::Receives, receives)] {
                if arms {
                    self.arm_queue(side);
                }
            }
            let sends_have_come = sends && self.sends.has_completions();
            let receives_have_come = receives && self.receives.has_completions();
            let have_come = sends_have_come || receives_have_come;
            if have_come {
                self.poll();
            }
            // That, or another caller who has the lock, may have used up the receive requests: then
            // only the send queue reports a failure.
            state = self.state();
            if !have_come && (!was_any_posted || self.receive_requests.is_any_posted()) {
                return;
            }
        }
    }

    fn arm_queue(&self, side: CqKind) {
        if let Err(error) = self.queue(side).arm(false) {
            self.fail(Failure::Device(error));
        }
    }

    /// Whether that is a change.
    pub(super) fn set_armed(&self, state: &mut State, side: CqKind, is_armed: bool) -> bool {
        let Armed { sends, receives } = &mut state.armed;
        let armed = match side {
            CqKind::Sends => sends,
            CqKind::Receives => receives,
        };
        let is_change = *armed != is_armed;
        *armed = is_armed;
        if is_change {
            self.device.count_armed(is_armed);
        }
        is_change
    }

    pub(crate) fn register(&self, interest: Interest, key: u64, waker: &Waker) {
        let mut state = self.state();
        let replaced = state.waiters.add(interest, key, waker);
        self.arm(state);
        drop(replaced);
    }

    /// Adds a thread that waits for a message, if nothing else can end its wait but the end of
    /// the connection: no deadline, no keep-alive, no failure. It polls next.
    pub(in crate::messages) fn register_thread(
        &self,
        key: u64,
        event_loop: &Arc<EventLoop>,
    ) -> Option<WaitingThread> {
        let mut state = self.state();
        if !state.waits_only_for_peer(self.receive_requests.is_any_posted()) {
            return None;
        }
        let spare = state.spare_thread.take();
        let thread = spare.unwrap_or_else(|| event_loop.waiting_thread());
        let replaced = state
            .waiters
            .add(Interest::ReceiveReady, key, thread.waker());
        let arms = self.set_armed(&mut state, CqKind::Receives, true);
        drop(state);
        drop(replaced);
        if arms {
            self.arm_queue(CqKind::Receives);
        }
        let have_come = arms && self.receives.has_completions();
        if have_come {
            self.poll();
        }
        // As when others are armed.
        let state = self.state();
        if have_come || !self.receive_requests.is_any_posted() {
            self.arm(state);
        }
        Some(thread)
    }

    /// Removes a waiter that looks next.
    pub(in crate::messages) fn withdraw(&self, interest: Interest, key: u64) {
        let waiter = self.state().waiters.remove(interest, key);
        drop(waiter);
    }

    /// Removes a waiter. If it was woken for something, another one is woken instead.
    pub(crate) fn deregister(&self, interest: Interest, key: u64) {
        let mut state = self.state();
        let waiter = state.waiters.remove(interest, key);
        let is_ready = match interest {
            Interest::ReceiveReady => !state.arrived.is_empty(),
            Interest::SendReady => state.has_room(),
            Interest::Flushed(_) | Interest::Completion(_) | Interest::Closed => false,
        };
        let next = state.waiters.first(interest).filter(|_| is_ready).cloned();
        drop(state);
        drop(waiter);
        if let Some(next) = next {
            next.wake();
        }
    }
}
