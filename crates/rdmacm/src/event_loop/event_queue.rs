//! What has come for an id and was not read yet.

use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use rdmacm_core::{Error, Event, EventKind};

use super::disconnect_state::DisconnectState;
use super::pending_events::PendingEvents;
use super::{WaitSource, WaiterQueue, Wakers, wake_all};
use crate::close_reason::CloseReason;
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering};
use crate::trace::Trace;

/// How many requests of peers are queued: for a listener by default, for a datagram socket always.
pub(crate) const DEFAULT_MAX_REQUESTS: usize = 1024;

/// One thing that came for an id.
#[derive(Debug)]
pub(crate) enum QueuedEvent {
    /// An event of the connection manager.
    Cm(Event),
    /// A command that ran on the blocking executor has failed; `None` if the executor has dropped
    /// it.
    CommandFailed(Option<Error>),
    /// The queue is closed: nothing more comes.
    Closed,
}

/// The events of an id, and who waits for them.
#[derive(Default)]
pub(crate) struct EventQueue {
    inner: Mutex<Inner>,
    /// Whether [`pop`](Self::pop) would return something. Read without the lock.
    is_ready: AtomicBool,
    disconnect_state: DisconnectState,
    trace: Trace,
}

#[derive(Default)]
struct Inner {
    events: PendingEvents,
    /// How many connect requests may be queued. More are rejected.
    max_requests: Option<usize>,
    requests: usize,
    waiters: WaiterQueue,
    /// Of a connection, which wakes its own waiters.
    connection: Option<Waker>,
    is_closed: bool,
    close_reason: Option<CloseReason>,
}

impl EventQueue {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The queue of a listener, for at most `max_requests` connect requests.
    pub(crate) fn for_requests(max_requests: usize) -> Arc<Self> {
        let queue = Self::default();
        queue.inner().max_requests = Some(max_requests);
        Arc::new(queue)
    }

    pub(crate) fn trace(&self) -> &Trace {
        &self.trace
    }

    pub(crate) fn disconnect_state(&self) -> &DisconnectState {
        &self.disconnect_state
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    pub(crate) fn push(&self, event: QueuedEvent) {
        let mut inner = self.inner();
        let is_end = is_end(&event);
        if is_request(&event) {
            if inner.is_closed || inner.max_requests.is_some_and(|max| inner.requests >= max) {
                drop(inner);
                // Dropping a request rejects it at once.
                drop(event);
                return;
            }
            inner.requests += 1;
        }
        inner.events.push(event);
        self.is_ready.store(true, Ordering::Release);
        // What ends a connection is for all, also if the first of them is a future that nobody polls.
        let mut woken: Wakers = if is_end {
            inner.waiters.iter().cloned().collect()
        } else {
            inner.waiters.next()
        };
        if let Some(connection) = &inner.connection {
            woken.add(connection.clone());
        }
        drop(inner);
        woken.wake();
    }

    /// From now on this waker too is woken by all that comes. Those who have waited for the
    /// connection wait for something else by now.
    pub(crate) fn wake_connection(&self, waker: Waker) {
        let mut inner = self.inner();
        let replaced = inner.connection.replace(waker);
        let former = std::mem::take(&mut inner.waiters);
        drop(inner);
        drop((replaced, former));
    }

    /// Whether it has events, or is closed.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Acquire)
    }

    /// The oldest event. A closed queue that is empty returns [`QueuedEvent::Closed`].
    pub(crate) fn pop(&self) -> Option<QueuedEvent> {
        if !self.is_ready() {
            return None;
        }
        let mut inner = self.inner();
        let event = inner.events.pop();
        if event.as_ref().is_some_and(is_request) {
            inner.requests -= 1;
        }
        let is_ready = inner.is_closed || !inner.events.is_empty();
        self.is_ready.store(is_ready, Ordering::Release);
        match event {
            None if inner.is_closed => Some(QueuedEvent::Closed),
            event => event,
        }
    }

    /// Accepts no more connect requests, and wakes all waiters: what is queued is read
    /// first, then [`QueuedEvent::Closed`].
    pub(crate) fn close(&self) {
        let mut inner = self.inner();
        inner.is_closed = true;
        self.is_ready.store(true, Ordering::Release);
        let waiters = inner.waiters.iter().chain(&inner.connection);
        let waiters: Vec<_> = waiters.cloned().collect();
        drop(inner);
        wake_all(waiters);
    }

    /// Whether it was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_ready() && self.inner().is_closed
    }

    /// Records why the connection or the listener closed, and closes the queue.
    pub(crate) fn close_with(&self, reason: CloseReason) {
        self.inner().close_reason.get_or_insert(reason);
        self.close();
    }

    /// Why it closed, if an event that was read before says so.
    pub(crate) fn close_reason(&self) -> Option<CloseReason> {
        self.inner().close_reason
    }

    /// Why it closed, if an event that is queued or was read before says so.
    pub(crate) fn read_close_reason(&self) -> Option<CloseReason> {
        loop {
            match self.pop()? {
                QueuedEvent::Cm(event) => {
                    if let Some(reason) = CloseReason::from_event(&event) {
                        self.close_with(reason);
                    }
                }
                QueuedEvent::CommandFailed(_) => {}
                QueuedEvent::Closed => return self.close_reason(),
            }
        }
    }

    /// Wakes `waker` when something comes.
    pub(crate) fn register(&self, key: u64, waker: &Waker) {
        let replaced = self.add_waiter(key, waker);
        drop(replaced);
    }

    /// As [`register`](Self::register), of a caller with a lock. Returns the waker that it
    /// replaces, to be dropped without the lock.
    #[must_use]
    pub(crate) fn add_waiter(&self, key: u64, waker: &Waker) -> Option<Waker> {
        self.inner().waiters.add(key, waker)
    }

    /// Removes all waiters: they are about to register again.
    pub(crate) fn forget_waiters(&self) {
        let waiters = std::mem::take(&mut self.inner().waiters);
        drop(waiters);
    }

    /// Removes a waiter that looks next.
    pub(crate) fn withdraw(&self, key: u64) {
        let waiter = self.inner().waiters.remove(key);
        drop(waiter);
    }

    /// Removes a waiter. If it was woken for an event, another one is woken instead.
    pub(crate) fn deregister(&self, key: u64) {
        self.remove_waiter(key).finish();
    }

    /// As [`deregister`](Self::deregister), of a caller with a lock, which finishes it without
    /// the lock.
    pub(crate) fn remove_waiter(&self, key: u64) -> RemovedWaiter {
        let mut inner = self.inner();
        let waiter = inner.waiters.remove(key);
        let is_ready = !inner.events.is_empty() || inner.is_closed;
        let next = if is_ready {
            inner.waiters.next()
        } else {
            Wakers::default()
        };
        RemovedWaiter { waiter, next }
    }
}

/// A waiter that was removed, and those that are to be woken instead.
#[derive(Debug)]
#[must_use]
pub(crate) struct RemovedWaiter {
    waiter: Option<Waker>,
    next: Wakers,
}

impl RemovedWaiter {
    /// Not under a lock: dropping the last waker of a task ends the task.
    pub(crate) fn finish(self) {
        self.into_next().wake();
    }

    /// Who is to be woken. As [`finish`](Self::finish) otherwise.
    pub(crate) fn into_next(self) -> Wakers {
        drop(self.waiter);
        self.next
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_none(&self) -> bool {
        self.waiter.is_none() && self.next.is_empty()
    }
}

impl WaitSource for &EventQueue {
    type Item = QueuedEvent;

    fn take(&mut self) -> Option<QueuedEvent> {
        self.pop()
    }

    fn register(&mut self, key: u64, waker: &Waker) {
        EventQueue::register(self, key, waker);
    }

    fn withdraw(&mut self, key: u64) {
        EventQueue::withdraw(self, key);
    }

    fn deregister(&mut self, key: u64) {
        EventQueue::deregister(self, key);
    }
}

fn is_request(event: &QueuedEvent) -> bool {
    matches!(event, QueuedEvent::Cm(event) if event.kind() == EventKind::ConnectRequest)
}

/// Whether it ends a connection, or a listener.
fn is_end(event: &QueuedEvent) -> bool {
    matches!(event, QueuedEvent::Cm(event) if CloseReason::from_event(event).is_some())
}

impl fmt::Debug for EventQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.inner();
        f.debug_struct("EventQueue")
            .field("events", &inner.events.len())
            .field("waiters", &inner.waiters.len())
            .finish_non_exhaustive()
    }
}
