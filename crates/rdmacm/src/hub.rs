//! One event channel for any number of ids, tasks and threads.
//!
//! Whoever waits drives: it reads the channel, puts each event into the mailbox
//! of the id it belongs to, wakes whoever waits for that mailbox, and passes the
//! turn on. There is no thread of the library's own behind it, and no
//! `next_event` that could steal another's.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant;

use rdmacm_core::{Error, Event, EventChannel, EventKind, IdHandle};

use crate::offload::Offload;
use crate::reactor::Reactor;

mod arm;
mod block;
mod connecting;
mod elsewhere;
mod failure;
mod handshakes;
mod mailbox;
mod next;
#[cfg(feature = "verbs")]
mod queues;
mod sources;
mod tracked;

pub(crate) use block::block_on;
pub(crate) use connecting::Connecting;
pub(crate) use elsewhere::elsewhere;
pub(crate) use handshakes::{Handshakes, Permit};
pub(crate) use mailbox::{End, Letter, Mailbox};
pub(crate) use next::{Place, next, sleep_until};
pub(crate) use sources::Sources;
pub(crate) use tracked::{Tracked, is_iwarp};

use arm::{Armed, Turn};

/// How many events are read in one turn. Whoever floods a listener keeps timers,
/// completions and other tasks waiting for no longer than so many take.
const SHARE: usize = 32;

/// A channel and all who wait for its ids.
pub(crate) struct Hub {
    pub(crate) channel: EventChannel,
    sources: Sources,
    pub(crate) offload: Arc<dyn Offload>,
    pub(crate) handshakes: Arc<Handshakes>,
    state: Mutex<State>,
    /// A thread that led has stepped down, or a thread has been woken.
    changed: Condvar,
    /// The runtime's part; `None` where only threads wait.
    armed: Option<Armed>,
    /// Set by the runtime: there may be something to read, or a timer is due.
    due: AtomicBool,
    /// How often reading or waiting has failed.
    failures: AtomicU64,
}

#[derive(Default)]
struct State {
    mailboxes: HashMap<IdHandle, Arc<Mailbox>>,
    timers: BTreeMap<(Instant, u64), Waker>,
    /// Everyone who waits: one of them gets the turn.
    waiters: BTreeMap<u64, Waker>,
    leader: Leader,
    /// Of the task that reads.
    turn: Turn,
    /// Why reading or waiting failed the last time.
    failure: Option<Error>,
    next_key: u64,
}

/// The thread that reads the channel for all threads that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Leader {
    /// None waits, or the next one is about to lead.
    #[default]
    None,
    /// It hands out what there is.
    Awake,
    /// It sleeps until there is something to read, a timer is due or someone
    /// wakes it.
    Asleep,
}

impl Hub {
    pub(crate) fn new(
        channel: EventChannel,
        sources: Sources,
        offload: Arc<dyn Offload>,
        handshakes: usize,
        reactor: Option<Box<dyn Reactor>>,
    ) -> Arc<Self> {
        let due = AtomicBool::new(reactor.is_some());
        Arc::new_cyclic(|hub| Self {
            channel,
            sources,
            offload,
            handshakes: Handshakes::new(handshakes),
            state: Mutex::default(),
            changed: Condvar::new(),
            armed: reactor.map(|reactor| Armed::new(reactor, hub.clone())),
            due,
            failures: AtomicU64::new(0),
        })
    }

    pub(crate) fn now(&self) -> Instant {
        self.channel.now()
    }

    /// Consistent between any two statements, so a panic elsewhere while it was
    /// locked leaves nothing broken.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self) -> u64 {
        let mut state = self.state();
        state.next_key += 1;
        state.next_key
    }

    pub(crate) fn introduce(&self, id: &IdHandle, mailbox: &Arc<Mailbox>) {
        mailbox.trace().name(id);
        let mailbox = Arc::clone(mailbox);
        self.state().mailboxes.insert(id.clone(), mailbox);
    }

    pub(crate) fn forget(&self, id: &IdHandle) {
        // Dropped after the lock: what is in it may own ids.
        let mailbox = self.state().mailboxes.remove(id);
        drop(mailbox);
    }

    /// Reads what there is, up to a turn's share, and hands it out, in order: one at a
    /// time does, the thread that leads or the task that has the turn. Breaks where
    /// there may be more.
    fn drain(&self) -> ControlFlow<()> {
        let events = self.drain_events();
        let sources = self.sources.drain();
        match events {
            ControlFlow::Continue(()) => sources,
            ControlFlow::Break(()) => events,
        }
    }

    fn drain_events(&self) -> ControlFlow<()> {
        for _ in 0..SHARE {
            match self.channel.try_next_event() {
                Ok(Some(event)) => self.hand_out(event),
                Ok(None) => return ControlFlow::Continue(()),
                Err(Error::Woken) => {}
                Err(error) => {
                    self.fail(error);
                    break;
                }
            }
        }
        ControlFlow::Break(())
    }

    fn hand_out(&self, event: Event) {
        // A multicast group's events are its id's; a connect request is its
        // listener's. One whose owner has just gone is dropped.
        let mailbox = self.state().mailboxes.get(event.id()).cloned();
        let Some(mailbox) = mailbox else {
            return;
        };
        mailbox.trace().event(&event);
        if event.kind() == EventKind::Disconnected {
            mailbox.answer();
        }
        mailbox.deliver(Letter::Event(Box::new(event)));
    }

    /// Wakes those whose time has come.
    fn ring(&self) {
        let now = self.now();
        let mut state = self.state();
        let later = state.timers.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut state.timers, later);
        drop(state);
        due.into_values().for_each(Waker::wake);
    }

    /// When the first timer is due.
    fn first_timer(&self) -> Option<Instant> {
        let state = self.state();
        state.timers.first_key_value().map(|((at, _), _)| *at)
    }

    /// Gives the turn to one who waits.
    fn pass_on(&self) {
        let waiter = self.state().waiters.values().next().cloned();
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }

    /// One who waits, or was to take the turn, does so no more.
    fn leave(&self, key: u64, timer: Option<Instant>) {
        let mut state = self.state();
        let waiter = state.waiters.remove(&key);
        let timer = timer.and_then(|at| state.timers.remove(&(at, key)));
        drop(state);
        // Not under the lock: the last to know a task ends it.
        drop((waiter, timer));
        if self.due.load(Ordering::Acquire) {
            self.pass_on();
        }
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("channel", &self.channel)
            .finish_non_exhaustive()
    }
}
