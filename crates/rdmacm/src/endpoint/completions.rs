//! Waiting for completions of a queue pair that the caller posts to.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Weak};
use std::task::Waker;

use parking_lot::{Mutex, MutexGuard};
use rdmacm_core::{QueuePair as _, Transport};
use rdmacm_verbs::{Completion, CompletionChannel, CompletionQueue, QueuePair};

use crate::attempt::Attempt;
use crate::data::{CqKind, flush_closed, note_closed, readiness};
use crate::error::{Cause, Result};
use crate::established::Established;
use crate::event_loop::{
    Drained, EventLoop, EventSource, WaitSource, WaiterQueue, wait_for, wake_all,
};
use crate::stage::Stage;

/// Waits for the next completion of one of the queues of a connection's queue pair.
pub(crate) async fn next_completion(
    attempt: &Attempt,
    established: &Established,
    queue_pair: &QueuePair,
    kind: CqKind,
) -> Result<Completion> {
    let stage = match kind {
        CqKind::Sends => Stage::Send,
        CqKind::Receives => Stage::Receive,
    };
    let source = CompletionSource {
        established,
        queue_pair,
        kind,
        channel: None,
        failure: None,
    };
    let completed = wait_for(&attempt.event_loop, source, attempt.until).await;
    completed
        .map_err(Cause::from)
        .and_then(|completed| completed)
        .map_err(|cause| attempt.fail_on(established.id.id(), stage, cause))
}

/// The completions of a queue, then why there are no more.
#[derive(Debug)]
struct CompletionSource<'a> {
    established: &'a Established,
    queue_pair: &'a QueuePair,
    kind: CqKind,
    channel: Option<Arc<WatchedChannel>>,
    /// Why the queue cannot be waited for.
    failure: Option<rdmacm_verbs::Error>,
}

impl CompletionSource<'_> {
    fn queue(&self) -> &CompletionQueue {
        match self.kind {
            CqKind::Sends => self.queue_pair.send_cq(),
            CqKind::Receives => self.queue_pair.recv_cq(),
        }
    }

    /// How many requests have not completed.
    fn outstanding(&self) -> u32 {
        match self.kind {
            CqKind::Sends => self.queue_pair.outstanding_sends(),
            CqKind::Receives => self.queue_pair.outstanding_receives(),
        }
    }

    /// Why the connection is closed. What came before is in the queue by then; what was in flight
    /// completes, on rxe some time after the move to ERR.
    fn closed(&self) -> Option<Cause> {
        let reason = self.established.close_reason()?;
        note_closed(self.queue_pair.context(), reason.kind());
        let id = self.established.id.id();
        flush_closed(id, self.queue_pair, reason, || self.outstanding() == 0);
        Some(Cause::Closed(reason))
    }

    /// The next completion, without those of requests that siw completes twice: it does so while a
    /// connection closes.
    fn poll(&self) -> rdmacm_verbs::Result<Option<Completion>> {
        let may_complete_twice =
            || self.queue_pair.transport() == Transport::IWarp && self.queue_pair.is_broken();
        loop {
            match self.queue().poll() {
                Err(rdmacm_verbs::Error::Stray { .. }) if may_complete_twice() => {}
                polled => return polled,
            }
        }
    }

    fn try_register(&mut self, key: u64, waker: &Waker) -> rdmacm_verbs::Result<()> {
        let channel = self.queue().own_channel()?;
        let event_loop = self.established.id.event_loop();
        let watched = WatchedChannels::add(event_loop, channel, key, waker)?;
        self.channel = Some(watched);
        self.queue().arm(false)
    }
}

impl WaitSource for CompletionSource<'_> {
    type Item = Result<Completion, Cause>;

    fn take(&mut self) -> Option<Self::Item> {
        let closed = self.closed();
        match self.poll() {
            Ok(Some(completion)) => return Some(Ok(completion)),
            Ok(None) => {}
            Err(error) => return Some(Err(Cause::device(error))),
        }
        let failure = self.failure.take().map(Cause::device);
        if failure.is_none() && closed.is_some() && self.outstanding() > 0 {
            return None;
        }
        closed.or(failure).map(Err)
    }

    /// Both the id and the queue report that the connection has closed.
    fn register(&mut self, key: u64, waker: &Waker) {
        self.established.id.queue().register(key, waker);
        self.failure = self.try_register(key, waker).err();
    }

    fn deregister(&mut self, key: u64) {
        if let Some(channel) = self.channel.take() {
            WatchedChannels::remove(self.established.id.event_loop(), &channel, key);
        }
        self.established.id.queue().deregister(key);
    }
}

/// The completion channels that callers wait for, in an event loop.
#[derive(Debug, Default)]
struct WatchedChannels(Mutex<Vec<Arc<WatchedChannel>>>);

/// A channel of one completion queue, and who waits for that. It is watched only while
/// somebody waits.
#[derive(Debug)]
struct WatchedChannel {
    channel: CompletionChannel,
    waiters: Mutex<WaiterQueue>,
    all: Weak<WatchedChannels>,
}

impl WatchedChannels {
    fn add(
        event_loop: &EventLoop,
        channel: &CompletionChannel,
        key: u64,
        waker: &Waker,
    ) -> rdmacm_verbs::Result<Arc<WatchedChannel>> {
        let channels = event_loop.extensions().get_or_default::<Self>();
        // Held until the channel is watched, so that nobody removes it meanwhile.
        let mut watched = channels.watched();
        if let Some(one) = watched.iter().find(|one| one.channel == *channel) {
            let one = Arc::clone(one);
            let replaced = one.waiters().add(key, waker);
            drop(watched);
            // Not under the lock: dropping the last waker of a task ends the task.
            drop(replaced);
            return Ok(one);
        }
        let mut waiters = WaiterQueue::default();
        let none = waiters.add(key, waker);
        debug_assert!(none.is_none(), "nobody else waits yet");
        let one = Arc::new(WatchedChannel {
            channel: channel.clone(),
            waiters: Mutex::new(waiters),
            all: Arc::downgrade(&channels),
        });
        let source: Arc<dyn EventSource> = one.clone();
        event_loop
            .watch(&source)
            .map_err(|errno| rdmacm_verbs::Error::Wait {
                errno: errno as i32,
            })?;
        watched.push(Arc::clone(&one));
        Ok(one)
    }

    fn remove(event_loop: &EventLoop, channel: &Arc<WatchedChannel>, key: u64) {
        let channels = event_loop.extensions().get_or_default::<Self>();
        let mut watched = channels.watched();
        let waiter = channel.waiters().remove(key);
        if channel.waiters().is_empty() {
            watched.retain(|one| !Arc::ptr_eq(one, channel));
            event_loop.unwatch(&**channel);
        }
        drop(watched);
        drop(waiter);
    }

    fn watched(&self) -> MutexGuard<'_, Vec<Arc<WatchedChannel>>> {
        self.0.lock()
    }
}

impl WatchedChannel {
    fn waiters(&self) -> MutexGuard<'_, WaiterQueue> {
        self.waiters.lock()
    }

    /// Wakes all who wait for the channel. The last waiter may have gone since the event loop has
    /// found that the channel is readable, and another one come, which does not know this value.
    fn wake_all(&self) {
        let Some(all) = self.all.upgrade() else {
            return;
        };
        let watched = all.watched();
        let one = watched.iter().find(|one| one.channel == self.channel);
        let waiters: Vec<_> = one.iter().flat_map(|one| one.cloned_waiters()).collect();
        drop(watched);
        wake_all(waiters);
    }

    fn cloned_waiters(&self) -> Vec<Waker> {
        self.waiters().iter().cloned().collect()
    }
}

impl EventSource for WatchedChannel {
    fn readiness(&self) -> nix::Result<BorrowedFd<'_>> {
        readiness(&self.channel)
    }

    /// Wakes all waiters if the queue has notified: each polls, and waits again if it finds
    /// nothing.
    fn drain(&self) -> rdmacm_core::Result<Drained> {
        let mut has_notified = false;
        let drained = loop {
            match self.channel.try_next() {
                Ok(Some(_)) => has_notified = true,
                Ok(None) => break Drained::Open,
                // The descriptor stays readable.
                Err(_) => break Drained::Closed,
            }
        };
        if has_notified || drained == Drained::Closed {
            self.wake_all();
        }
        Ok(drained)
    }

    fn is_in_child(&self) -> bool {
        self.channel.context().is_in_child()
    }
}
