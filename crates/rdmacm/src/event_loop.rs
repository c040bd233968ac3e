//! One event loop for any number of ids, tasks and threads.
//!
//! The task or thread that waits runs the loop: it reads the event sources, queues each
//! event for the id that it belongs to, wakes the tasks and threads that wait for it, and
//! hands the loop over to another waiter. The library has no thread of its own for this,
//! and no caller can take another one's event.
//!
//! The event channel is one [`EventSource`]. Layers above add others, such as the
//! completion channel of a device.

use std::fmt;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use rdmacm_core::{Error, EventChannel, IdHandle};

use crate::blocking_executor::BlockingExecutor;
use crate::runtime::Reactor;
use crate::sync::{AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering};

mod cm_events;
mod connecting;
mod disconnect_state;
mod event_queue;
mod extensions;
mod failure;
mod handshakes;
mod managed_id;
mod parked;
mod parker;
mod pending_events;
mod poll_slot;
mod runtime;
mod source;
mod spawn_blocking;
mod threads;
mod timed_registration;
mod timed_wait;
mod timers;
mod wait;
mod waiter_queue;
mod wake_all;
mod waker_fn;
mod wakers;

pub(crate) use connecting::Connecting;
pub(crate) use event_queue::{DEFAULT_MAX_REQUESTS, EventQueue, QueuedEvent, RemovedWaiter};
pub(crate) use extensions::Extensions;
pub(crate) use handshakes::{HandshakeLimit, HandshakePermit, HandshakeRequest};
pub(crate) use managed_id::{ManagedId, is_iwarp};
pub(crate) use poll_slot::PollSlot;
pub(crate) use source::{Drained, EventSource, MAX_EVENTS, Sources};
pub(crate) use spawn_blocking::{TaskLost, spawn_blocking};
pub(crate) use threads::{WaitingThread, block_on};
pub(crate) use timed_registration::TimedSource;
pub(crate) use timed_wait::TimedWait;
pub(crate) use wait::{Registration, WaitSource, drive, sleep_until, wait_for};
#[cfg(test)]
pub(crate) use waiter_queue::new_waker;
pub(crate) use waiter_queue::{WaiterKind, WaiterQueue};
pub(crate) use wake_all::{wake_all, wake_and_then};
pub(crate) use waker_fn::waker_fn;
pub(crate) use wakers::Wakers;

use cm_events::CmEvents;
use parked::ParkedThreads;
use runtime::{DrainState, RuntimeRegistration};
use source::ReadySources;
use timers::{TimerId, Timers};
use waiter_queue::FUTURES;

/// An event channel, other event sources, and the tasks and threads that wait for them.
pub(crate) struct EventLoop {
    cm: Arc<CmEvents>,
    sources: Sources,
    executor: Arc<dyn BlockingExecutor>,
    handshakes: Arc<HandshakeLimit>,
    extensions: Extensions,
    state: Mutex<State>,
    /// `None` if only threads wait.
    runtime: Option<RuntimeRegistration>,
    /// Set by the runtime: a source may be readable, or a timer is due.
    due: AtomicBool,
    /// How often reading or waiting has failed.
    failures: AtomicU64,
    /// Of threads that have waited, for the next ones.
    spare_threads: Mutex<Vec<WaitingThread>>,
    last_key: AtomicU64,
    /// The process that has opened it. A forked child inherits its state, but none of its threads.
    process: u32,
}

/// What an [`EventLoop`] is made of.
pub(crate) struct EventLoopParts {
    pub(crate) channel: EventChannel,
    pub(crate) executor: Arc<dyn BlockingExecutor>,
    pub(crate) max_handshakes: usize,
    pub(crate) extensions: Extensions,
}

#[derive(Default)]
struct State {
    timers: Timers,
    /// The tasks that wait, of which one must run the event loop.
    tasks: WaiterQueue,
    leader: Leader,
    /// Of the task that reads the sources.
    drain: DrainState,
    /// Why reading or waiting failed the last time.
    failure: Option<Error>,
    parked: ParkedThreads,
    /// A caller that does not wait has found another thread leading, which may not read what the
    /// caller has come for.
    is_pass_due: bool,
    /// The leader leaves after this pass.
    is_last_pass: bool,
}

impl State {
    /// Whether a thread that leaves must see to that. The next leader does, if there is one.
    fn take_pass_due(&mut self) -> bool {
        self.parked.any().is_none() && std::mem::take(&mut self.is_pass_due)
    }

    /// How many events of the connection manager are probably there: mostly, each waiter waits
    /// for one. Reading the one that is not there would be a system call for nothing.
    fn expected_events(&self) -> usize {
        let threads = self.parked.len() + 1;
        self.tasks.len().max(threads).min(MAX_EVENTS)
    }
}

/// The thread that reads the sources for all threads that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Leader {
    /// No thread waits, or the next one is about to lead.
    #[default]
    None,
    /// It reads the sources.
    Awake,
    /// The thread with this number sleeps until a source is readable, a timer is due or
    /// another thread wakes it.
    Asleep(u64),
}

impl Leader {
    fn is_asleep(self) -> bool {
        matches!(self, Self::Asleep(_))
    }
}

impl EventLoop {
    /// `register` registers the descriptor of all sources with a runtime, if there is one.
    pub(crate) fn new(
        parts: EventLoopParts,
        register: impl FnOnce(&Sources) -> std::io::Result<Option<Box<dyn Reactor>>>,
    ) -> std::io::Result<Arc<Self>> {
        let cm = Arc::new(CmEvents::new(parts.channel));
        let sources = Sources::new(&cm)?;
        let reactor = register(&sources)?;
        if let Some(reactor) = &reactor {
            cm.channel().advance_to(reactor.now());
        }
        let due = AtomicBool::new(reactor.is_some());
        Ok(Arc::new_cyclic(|this| Self {
            cm,
            sources,
            executor: parts.executor,
            handshakes: HandshakeLimit::new(parts.max_handshakes),
            extensions: parts.extensions,
            state: Mutex::default(),
            runtime: reactor.map(|reactor| RuntimeRegistration::new(reactor, this.clone())),
            due,
            failures: AtomicU64::new(0),
            spare_threads: Mutex::default(),
            last_key: AtomicU64::new(FUTURES),
            process: std::process::id(),
        }))
    }

    pub(crate) fn channel(&self) -> &EventChannel {
        self.cm.channel()
    }

    pub(crate) fn executor(&self) -> &dyn BlockingExecutor {
        self.executor.as_ref()
    }

    pub(crate) fn handshakes(&self) -> &Arc<HandshakeLimit> {
        &self.handshakes
    }

    /// What layers above keep with this event loop.
    pub(crate) fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// Whether threads wait, rather than tasks of a runtime.
    pub(crate) fn is_blocking(&self) -> bool {
        self.runtime.is_none()
    }

    pub(crate) fn now(&self) -> Instant {
        self.channel().now()
    }

    /// Readable while a source is.
    pub(crate) fn readiness(&self) -> BorrowedFd<'_> {
        self.sources.as_fd()
    }

    /// From now on events of the id go to the queue.
    pub(crate) fn add_id(&self, id: &IdHandle, queue: &Arc<EventQueue>) {
        self.cm.add(id, queue);
    }

    pub(crate) fn remove_id(&self, id: &IdHandle) {
        self.cm.remove(id);
    }

    #[cfg(test)]
    pub(crate) fn while_ids_are_locked(&self, work: impl FnOnce()) {
        self.cm.while_locked(work);
    }

    /// Watches a source from now on, unless it is watched already. The event loop does
    /// not keep the source alive.
    ///
    /// # Errors
    /// The error number of `epoll_ctl(2)`.
    pub(crate) fn watch(&self, source: &Arc<dyn EventSource>) -> Result<(), nix::errno::Errno> {
        let is_first = self.sources.watch(source)?;
        if is_first && self.state().leader.is_asleep() {
            // It waits for the event channel alone.
            self.channel().waker().wake();
        }
        Ok(())
    }

    /// Watches the source no more. In a forked child it does nothing: the parent still watches.
    pub(crate) fn unwatch(&self, source: &dyn EventSource) {
        self.sources.unwatch(source);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Waiters are woken in the order of their keys.
    pub(crate) fn new_key(&self) -> u64 {
        self.last_key.fetch_add(1, Ordering::Relaxed)
    }

    /// Reads the sources that are readable, each up to its share, which is `max_events` for
    /// the event channel. One thread or task at a time does. Returns whether there were any;
    /// `None` after a failure.
    fn drain(&self, max_events: usize) -> Option<bool> {
        let mut ready = ReadySources::default();
        let drained = self.sources.readable(&mut ready).and_then(|()| {
            self.sources.drain(&ready, max_events)?;
            Ok(!ready.is_empty())
        });
        drained.map_err(|error| self.fail(error)).ok()
    }

    /// Reads events of the connection manager until there is one for this queue, or none at all: for
    /// a caller who has done something else meanwhile, and need not wait for what is there.
    pub(crate) fn read_events_for(self: &Arc<Self>, queue: &EventQueue) {
        if self.is_blocking() {
            self.read_events_on_thread(queue);
        } else {
            self.read_events_in_task(queue);
        }
    }

    fn expected_events(&self) -> usize {
        self.state().expected_events()
    }

    fn fire_timers(&self) {
        self.fire_timers_after(|| {});
    }

    /// Fires the timers that are due, if there are any, after a look at something else.
    fn fire_timers_after(&self, look: impl FnOnce()) {
        let Some(first) = self.next_timer() else {
            return;
        };
        // Without the lock: a simulated clock has one of its own.
        let now = self.now();
        if first <= now {
            look();
            self.fire_timers_at(now);
        }
    }

    fn fire_timers_at(&self, now: Instant) {
        loop {
            let due = self.state().timers.fire(now);
            let Some(waker) = due else {
                return;
            };
            waker.wake();
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        self.state().timers.first()
    }

    /// Whether a timer has fired since its waiter was added.
    fn has_fired(&self, timer: &TimerId) -> bool {
        self.state().timers.has_fired(timer)
    }

    /// Wakes a task to run the loop.
    fn wake_runner(&self) {
        let next = self.state().tasks.next();
        next.wake();
    }

    /// Adds a waiter, with a timer if it has a deadline; or replaces the waker of one that
    /// has one. Of a thread, only the timer need be known.
    fn add_waiter(
        &self,
        key: u64,
        until: Option<Instant>,
        timer: &mut Option<TimerId>,
        waker: &Waker,
    ) {
        if self.is_blocking() && until.is_none() {
            return;
        }
        let mut state = self.state();
        let replaced = if self.is_blocking() {
            None
        } else {
            state.tasks.add(key, waker)
        };
        let mut oversleeps = false;
        let replaced = match (&*timer, until) {
            (Some(timer), _) => (replaced, state.timers.set_waker(timer, waker)),
            (None, None) => (replaced, None),
            (None, Some(at)) => {
                let is_first = state.timers.first().is_none_or(|first| at < first);
                oversleeps = is_first && state.leader.is_asleep();
                *timer = Some(state.timers.add(at, waker));
                (replaced, None)
            }
        };
        drop(state);
        // Not under the lock: dropping the last waker of a task ends the task.
        drop(replaced);
        if oversleeps {
            self.channel().waker().wake();
        }
    }

    fn remove_timer(&self, timer: TimerId) {
        let waker = self.state().timers.remove(timer);
        // Not under the lock: dropping the last waker of a task ends the task.
        drop(waker);
    }

    /// Removes a waiter, and returns the waker of a task. If it was woken to run the loop, another
    /// one is woken instead.
    fn remove_waiter(&self, key: u64, timer: Option<TimerId>) -> Option<Waker> {
        if self.is_blocking() && timer.is_none() {
            return None;
        }
        let mut state = self.state();
        let waiter = if self.is_blocking() {
            None
        } else {
            state.tasks.remove(key)
        };
        let timer = timer.and_then(|timer| state.timers.remove(timer));
        drop(state);
        // Not under the lock: dropping the last waker of a task ends the task.
        drop(timer);
        if self.due.load(Ordering::Acquire) {
            self.wake_runner();
        }
        waiter
    }
}

impl Drop for EventLoop {
    fn drop(&mut self) {
        if self.is_in_child() {
            // The runtime's descriptors are the parent's, too: what is deregistered here would be there.
            std::mem::forget(self.runtime.take());
        }
    }
}

impl fmt::Debug for EventLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLoop")
            .field("channel", self.channel())
            .finish_non_exhaustive()
    }
}
