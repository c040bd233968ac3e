//! Who waits, and the notifications for them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use super::StreamQueuePair;
use crate::data::{CompletionHandler, CqKind};
use crate::event_loop::{EventLoop, WaitingThread, Wakers, wake_and_then};
use crate::stream::failure::StreamFailure;
use crate::stream::receive_queue::ReceiveQueue;
use crate::stream::status::StreamInterest;

/// The queues whose notification was not requested before.
#[derive(Clone, Copy)]
struct NewlyArmed {
    sends: bool,
    receives: bool,
}

impl NewlyArmed {
    fn is_any(self) -> bool {
        self.sends || self.receives
    }
}

impl StreamQueuePair {
    /// Adds a waiter, and requests the notifications that it needs. The caller looks afterwards.
    pub(in crate::stream) fn register(&self, interest: StreamInterest, key: u64, waker: &Waker) {
        let replaced = self.status().queue_mut(interest).add(key, waker);
        drop(replaced);
        self.arm_and_poll(interest);
    }

    /// Adds a thread that waits for bytes, if nothing else can end its wait but the end of the
    /// connection: no keep-alive, no failure. It looks next; the flag says whether there was no
    /// completion after the notification was requested.
    pub(in crate::stream) fn register_thread(
        &self,
        key: u64,
        event_loop: &Arc<EventLoop>,
    ) -> Option<(WaitingThread, bool)> {
        let mut status = self.status();
        if status.failure().is_some() || status.keep_alive.next().is_some() {
            return None;
        }
        let spare = status.spare_thread.take();
        let thread = spare.unwrap_or_else(|| event_loop.waiting_thread());
        let readers = status.queue_mut(StreamInterest::Readable);
        let replaced = readers.add(key, thread.waker());
        drop(status);
        drop(replaced);
        let is_new = self.arm_and_poll(StreamInterest::Readable);
        // What was dispatched to this stream from shared requests before notifies no more.
        let has_checked = is_new && !self.receives.is_shared();
        Some((thread, has_checked))
    }

    /// Removes a thread that looks next, and keeps what it has waited with.
    pub(in crate::stream) fn withdraw_thread(
        &self,
        key: u64,
        thread: WaitingThread,
        event_loop: &EventLoop,
    ) {
        let mut status = self.status();
        // Two threads may have waited.
        let spare = status.spare_thread.replace(thread);
        let waiter = status.queue_mut(StreamInterest::Readable).remove(key);
        drop(status);
        drop(waiter);
        if let Some(spare) = spare {
            event_loop.keep_thread(spare);
        }
    }

    /// Requests the notifications that a waiter needs. Completions that are there already do not
    /// notify, so they are handled, also for those who have found the notification requested
    /// before it was.
    ///
    /// Returns whether one was not requested before. The caller looks again then: what it waits
    /// for changes when another caller handles what the peer has sent, or writes.
    pub(in crate::stream) fn arm_and_poll(&self, interest: StreamInterest) -> bool {
        let new = self.arm_for(interest);
        let sends_have_come = new.sends && self.sends.has_completions();
        if sends_have_come || new.receives && self.receives.has_any() {
            self.poll_and_rearm();
        }
        new.is_any()
    }

    /// Handles what has come, and requests the notifications that others need from then on.
    fn poll_and_rearm(&self) {
        let mut wakers = Wakers::default();
        self.poll_all(&mut wakers);
        // A single waiter that is woken looks itself, and arms again if it waits again.
        let others = self.status().has_others(&wakers);
        let arm = || {
            // Not the same notification again: one who waited for the peer may now wait for room
            // in the send queue.
            while others && self.arm_for_waiters() {
                CompletionHandler::poll(self);
            }
        };
        wake_and_then(|| wakers.wake(), arm);
    }

    /// Requests the notifications that a waiter needs, and no other: each costs a system call,
    /// and wakes the waiter. If the connection fails, both queues notify, unless other streams
    /// have the same receive queue.
    fn arm_for(&self, interest: StreamInterest) -> NewlyArmed {
        let (mut sends, receives) = match interest {
            StreamInterest::Readable => (false, true),
            StreamInterest::Writable => {
                let waits_for_peer = self.send.lock().waits_for_peer();
                (!waits_for_peer, waits_for_peer)
            }
            StreamInterest::Flushed => (true, false),
            StreamInterest::Progress => (true, true),
        };
        sends |= self.receives.is_shared();
        let mut wakers = Wakers::default();
        let newly = NewlyArmed {
            sends: sends && self.arm(CqKind::Sends, &mut wakers),
            receives: receives && self.arm(CqKind::Receives, &mut wakers),
        };
        wakers.wake();
        newly
    }

    /// Requests the notifications that those need who wait. Returns whether one was not requested
    /// before.
    fn arm_for_waiters(&self) -> bool {
        let interests = self.status().interests();
        let mut is_any_new = false;
        for interest in interests {
            is_any_new |= self.arm_for(interest).is_any();
        }
        is_any_new
    }

    /// Requests the next notification of a queue. Returns whether the caller must look again:
    /// not if it was requested before, whose caller looks.
    pub(super) fn arm(&self, kind: CqKind, wakers: &mut Wakers) -> bool {
        let (armed, must_look) = match (kind, &self.receives) {
            // It looks itself.
            (CqKind::Receives, ReceiveQueue::Shared(shared)) => (shared.receives.arm(), false),
            _ if self.set_armed(kind, true) => return false,
            (CqKind::Receives, ReceiveQueue::Own(receives)) => (receives.arm(false), true),
            (CqKind::Sends, _) => (self.sends.arm(false), true),
        };
        if let Err(error) = armed {
            self.fail(StreamFailure::device(error), wakers);
        }
        must_look
    }

    /// Returns what it was before.
    pub(super) fn set_armed(&self, kind: CqKind, is_armed: bool) -> bool {
        let armed = match kind {
            CqKind::Sends => &self.are_sends_armed,
            CqKind::Receives => &self.are_receives_armed,
        };
        let was_armed = armed.swap(is_armed, Ordering::AcqRel);
        if was_armed != is_armed {
            self.device.count_armed(is_armed);
        }
        was_armed
    }

    /// Removes a waiter that looks next.
    pub(in crate::stream) fn withdraw(&self, interest: StreamInterest, key: u64) {
        let waiter = self.status().queue_mut(interest).remove(key);
        drop(waiter);
    }

    /// Removes a waiter. If it was woken for something, another one is woken instead.
    pub(in crate::stream) fn deregister(&self, interest: StreamInterest, key: u64) {
        // Before it looks: whoever brings something from here on wakes another one.
        self.withdraw(interest, key);
        let is_ready = match interest {
            StreamInterest::Readable => self.receive.lock().receiver.readable() > 0,
            StreamInterest::Writable => self.send.lock().is_writable(),
            StreamInterest::Flushed => self.send.lock().is_idle(),
            // All of them were woken.
            StreamInterest::Progress => false,
        };
        if is_ready {
            self.wake_first(interest);
        }
    }

    fn wake_first(&self, interest: StreamInterest) {
        let mut wakers = Wakers::default();
        self.status().wake_first(interest, &mut wakers);
        wakers.wake();
    }

    /// After a read of a thread that was woken: wakes another reader if there is more to read.
    pub(in crate::stream) fn wake_next_reader(&self) {
        if !self.status.has_waiters() || self.receive.lock().receiver.readable() == 0 {
            return;
        }
        self.wake_first(StreamInterest::Readable);
    }

    /// Wakes all waiters.
    pub(in crate::stream) fn wake_all(&self) {
        let mut wakers = Wakers::default();
        self.status().wake_all(&mut wakers);
        wakers.wake();
    }
}

impl CompletionHandler for StreamQueuePair {
    fn notified(&self, kind: CqKind) {
        self.set_armed(kind, false);
        if kind == CqKind::Receives {
            let reader = self.status().only_reader().cloned();
            if let Some(reader) = reader {
                // It looks itself, and arms again if it waits again.
                return reader.wake();
            }
        }
        self.poll_and_rearm();
    }

    fn poll(&self) {
        let mut wakers = Wakers::default();
        self.poll_all(&mut wakers);
        wakers.wake();
    }
}
