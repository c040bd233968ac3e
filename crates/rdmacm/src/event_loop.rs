//! One event loop for any number of ids, tasks and threads.
//!
//! The task or thread that waits runs the loop: it reads the event sources, queues each
//! event for the id that it belongs to, wakes the tasks and threads that wait for it, and
//! hands the loop over to another waiter. The library has no thread of its own for this,
//! and no caller can take another one's event.
//!
//! The event channel is one [`EventSource`]. Layers above add others, such as the
//! completion channel of a device.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::Instant;

use rdmacm_core::{Error, EventChannel, IdHandle};

use crate::blocking_executor::BlockingExecutor;
use crate::runtime::Reactor;
use crate::sync::{AtomicBool, AtomicU64, Condvar, Mutex, MutexGuard, Ordering};

mod cm_events;
mod connecting;
mod event_queue;
mod extensions;
mod failure;
mod handshakes;
mod managed_id;
mod runtime;
mod source;
mod spawn_blocking;
mod threads;
mod wait;

pub(crate) use connecting::Connecting;
pub(crate) use event_queue::{EventQueue, QueuedEvent};
pub(crate) use extensions::Extensions;
pub(crate) use handshakes::{HandshakeLimit, HandshakePermit};
pub(crate) use managed_id::{ManagedId, is_iwarp};
pub(crate) use source::{Drained, EventSource, MAX_EVENTS, Sources};
pub(crate) use spawn_blocking::spawn_blocking;
pub(crate) use threads::block_on;
pub(crate) use wait::{Registration, WaitSource, drive, sleep_until, wait_for};

use cm_events::CmEvents;
use runtime::{DrainState, RuntimeRegistration};

/// An event channel, other event sources, and the tasks and threads that wait for them.
pub(crate) struct EventLoop {
    cm: Arc<CmEvents>,
    sources: Sources,
    executor: Arc<dyn BlockingExecutor>,
    handshakes: Arc<HandshakeLimit>,
    extensions: Extensions,
    state: Mutex<State>,
    /// A leading thread has stepped down, or a thread has been woken.
    leader_changed: Condvar,
    /// `None` if only threads wait.
    runtime: Option<RuntimeRegistration>,
    /// Set by the runtime: a source may be readable, or a timer is due.
    due: AtomicBool,
    /// How often reading or waiting has failed.
    failures: AtomicU64,
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
    timers: BTreeMap<(Instant, u64), Waker>,
    /// Every task and thread that waits. One of them is woken to run the loop.
    waiters: BTreeMap<u64, Waker>,
    leader: Leader,
    /// Of the task that reads the sources.
    drain: DrainState,
    /// Why reading or waiting failed the last time.
    failure: Option<Error>,
    last_key: u64,
}

/// The thread that reads the sources for all threads that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Leader {
    /// No thread waits, or the next one is about to lead.
    #[default]
    None,
    /// It reads the sources.
    Awake,
    /// It sleeps until a source is readable, a timer is due or another thread wakes it.
    Asleep,
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
            leader_changed: Condvar::new(),
            runtime: reactor.map(|reactor| RuntimeRegistration::new(reactor, this.clone())),
            due,
            failures: AtomicU64::new(0),
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

    pub(crate) fn now(&self) -> Instant {
        self.channel().now()
    }

    /// From now on events of the id go to the queue.
    pub(crate) fn add_id(&self, id: &IdHandle, queue: &Arc<EventQueue>) {
        self.cm.add(id, queue);
    }

    pub(crate) fn remove_id(&self, id: &IdHandle) {
        self.cm.remove(id);
    }

    /// Watches a source from now on, unless it is watched already. The event loop does
    /// not keep the source alive.
    ///
    /// # Errors
    /// The error number of `epoll_ctl(2)`.
    pub(crate) fn watch(&self, source: &Arc<dyn EventSource>) -> Result<(), nix::errno::Errno> {
        let is_first = self.sources.watch(source)?;
        if is_first && self.state().leader == Leader::Asleep {
            // It waits for the event channel alone.
            self.channel().waker().wake();
        }
        Ok(())
    }

    /// Watches the source no more.
    pub(crate) fn unwatch(&self, source: &Arc<dyn EventSource>) {
        self.sources.unwatch(source);
    }

    /// Each statement leaves the state consistent, so it is after a panic as well.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn new_key(&self) -> u64 {
        let mut state = self.state();
        state.last_key += 1;
        state.last_key
    }

    /// Reads the sources, each up to its share. One thread or task at a time does.
    fn drain(&self) -> Drained {
        self.sources.drain().unwrap_or_else(|error| {
            self.fail(error);
            Drained::More
        })
    }

    fn fire_timers(&self) {
        let now = self.now();
        let mut state = self.state();
        let later = state.timers.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut state.timers, later);
        drop(state);
        due.into_values().for_each(Waker::wake);
    }

    fn next_timer(&self) -> Option<Instant> {
        let state = self.state();
        state.timers.first_key_value().map(|((at, _), _)| *at)
    }

    /// Wakes one waiter to run the loop.
    fn wake_one(&self) {
        let waiter = self.state().waiters.values().next().cloned();
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }

    /// Adds a waiter, or replaces its waker.
    fn add_waiter(&self, key: u64, until: Option<Instant>, waker: &Waker) {
        let mut state = self.state();
        let replaced = state.waiters.insert(key, waker.clone());
        let Some(at) = until else {
            drop(state);
            // Not under the lock: dropping the last waker of a task ends the task.
            drop(replaced);
            return;
        };
        let first = state.timers.first_key_value().map(|((at, _), _)| *at);
        let replaced = (replaced, state.timers.insert((at, key), waker.clone()));
        let is_first = first.is_none_or(|first| at < first);
        let oversleeps = is_first && state.leader == Leader::Asleep;
        drop(state);
        drop(replaced);
        if oversleeps {
            self.channel().waker().wake();
        }
    }

    /// Removes a waiter. If it was woken to run the loop, another one is woken instead.
    fn remove_waiter(&self, key: u64, until: Option<Instant>) {
        let mut state = self.state();
        let waiter = state.waiters.remove(&key);
        let timer = until.and_then(|at| state.timers.remove(&(at, key)));
        drop(state);
        // Not under the lock: dropping the last waker of a task ends the task.
        drop((waiter, timer));
        if self.due.load(Ordering::Acquire) {
            self.wake_one();
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
