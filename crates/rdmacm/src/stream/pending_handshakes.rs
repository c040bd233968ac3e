//! Peers that are being accepted, several at a time.

use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rdmacm_core::{ConnParam, Deadline};

use super::handle::StreamHandle;
use super::handshake::PendingStream;
use super::listener_readiness::ListenerReadiness;
use super::options::StreamOptions;
use crate::attempt::Attempt;
use crate::connect::ACCEPT_DEADLINE;
use crate::error::{Cause, Error, Result, Target};
use crate::event_loop::{EventQueue, PollSlot, QueuedEvent, RemovedWaiter, WaiterQueue, wake_all};
use crate::listen::{ListeningIds, Request};
use crate::stage::Stage;

/// How many handshakes are in flight at a time by default.
const MAX_HANDSHAKES: usize = 64;

/// Who looks later than this after a deadline has not been waiting for it.
const PUNCTUAL: Duration = Duration::from_millis(100);

/// How much time a peer has whose deadline has passed while nobody waited: its answer may be
/// there, unread.
const GRACE: Duration = Duration::from_secs(1);

/// Which peers are given up that have not answered in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum GiveUp {
    /// The event loop has not run, and what they have sent may be unread.
    #[default]
    Nobody,
    /// The event loop has run, which reads some events at a time: those whose deadline somebody has
    /// waited for, and the others after a [grace period](GRACE).
    Awaited,
    /// All events were read.
    All,
}

/// The handshakes of a listener, which any caller that waits for a stream drives.
#[derive(Debug)]
pub(crate) struct PendingHandshakes {
    /// How many are in flight at a time. A peer that does not complete its handshake occupies one
    /// of them until its deadline.
    pub(crate) limit: usize,
    pub(crate) deadline: Deadline,
    state: Mutex<State>,
    /// Of those who poll for the listener itself.
    pub(crate) poll_slot: PollSlot,
    /// Of calls that do not wait.
    pub(super) readiness: OnceLock<ListenerReadiness>,
}

#[derive(Debug, Default)]
struct State {
    pending: Vec<PendingPeer>,
    /// Callers that wait for a stream: each waits for all handshakes.
    waiters: WaiterQueue,
}

/// A peer that is being accepted.
#[derive(Debug)]
struct PendingPeer {
    stream: PendingStream,
    /// When it is given up.
    until: Option<Instant>,
    has_had_grace: bool,
}

impl PendingPeer {
    fn new(stream: PendingStream) -> Self {
        Self {
            until: stream.attempt().until,
            stream,
            has_had_grace: false,
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    /// Whether it is given up. If not, it may have a grace period from now on.
    fn expires_or_has_grace(&mut self, now: Instant, give_up: GiveUp) -> bool {
        if !self.is_due(now) || self.stream.queue().is_ready() {
            return false;
        }
        let is_punctual = !self.is_due(now.checked_sub(PUNCTUAL).unwrap_or(now));
        if is_punctual || self.has_had_grace || give_up == GiveUp::All {
            return true;
        }
        self.has_had_grace = true;
        self.until = now.checked_add(GRACE);
        false
    }
}

impl Default for PendingHandshakes {
    fn default() -> Self {
        Self {
            limit: MAX_HANDSHAKES,
            deadline: ACCEPT_DEADLINE.into(),
            state: Mutex::default(),
            poll_slot: PollSlot::default(),
            readiness: OnceLock::new(),
        }
    }
}

impl PendingHandshakes {
    /// Begins to accept a request. What fails on this side is an error, such as memory that cannot
    /// be registered, or that the kernel does not have.
    pub(super) fn begin(
        &self,
        ids: &ListeningIds,
        request: Request,
        options: &StreamOptions,
    ) -> Result<()> {
        let attempt = Attempt::until(ids.event_loop(), self.deadline, Target::default());
        let begun = PendingStream::begin(attempt, request, ConnParam::new(), options);
        let pending = match begun {
            Ok(pending) => pending,
            Err(error) if is_of_peer(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut state = self.state();
        state.pending.push(PendingPeer::new(pending));
        let wakers = state.all_waiters();
        drop(state);
        wake_all(wakers);
        Ok(())
    }

    /// Wakes `waker` when a peer asks to connect, or something comes for one that is being accepted.
    pub(super) fn register(&self, ids: &ListeningIds, key: u64, waker: &Waker) {
        ids.register(key, waker);
        let mut state = self.state();
        let queues = state.queues();
        let mut replaced: Vec<_> = queues
            .filter_map(|queue| queue.add_waiter(key, waker))
            .collect();
        replaced.extend(state.waiters.add(key, waker));
        drop(state);
        // Not under the lock: dropping the last waker of a task ends the task.
        drop(replaced);
    }

    /// Removes a waiter.
    pub(super) fn deregister(&self, ids: &ListeningIds, key: u64) {
        ids.deregister(key);
        let mut state = self.state();
        let queues = state.queues();
        let removed: Vec<_> = queues
            .map(|queue| queue.remove_waiter(key))
            .filter(|removed| !removed.is_none())
            .collect();
        let waiter = state.waiters.remove(key);
        drop(state);
        drop(waiter);
        wake_all(removed.into_iter().flat_map(RemovedWaiter::into_next));
    }

    /// A stream that is established by what has come.
    pub(super) fn take_stream(&self, ids: &ListeningIds) -> Result<Option<StreamHandle>> {
        loop {
            let mut state = self.state();
            let was_full = state.is_full(self.limit);
            let Some((pending, event)) = state.take_next() else {
                return Ok(None);
            };
            // Without the lock: it may send commands.
            drop(state);
            let handled = pending.stream.handle(event);
            if let Ok(stream) = &handled {
                // Who has gone meanwhile was not removed. All others are told to come again.
                stream.queue().forget_waiters();
            }
            let mut state = self.state();
            let outcome = match handled {
                Ok(stream) => {
                    state.pending.push(PendingPeer { stream, ..pending });
                    None
                }
                Err(outcome) => Some(outcome),
            };
            // Whoever waits checks the sockets again once nobody is being accepted.
            let checks_again = state.pending.is_empty() && ids.next_check().is_some();
            let wakers = if was_full || checks_again || outcome.is_none() {
                state.all_waiters()
            } else {
                Vec::new()
            };
            drop(state);
            wake_all(wakers);
            match outcome {
                Some(Ok(stream)) => return Ok(Some(stream)),
                Some(Err(error)) if !is_of_peer(&error) => return Err(error),
                Some(Err(_)) | None => {}
            }
        }
    }

    /// Gives up all peers whose handshake is in flight.
    pub(super) fn give_up(&self) {
        // Without the lock: see `State::expired`.
        let pending = std::mem::take(&mut self.state().pending);
        drop(pending);
    }

    pub(super) fn give_up_on_silent_peers(&self, ids: &ListeningIds, give_up: GiveUp) {
        let mut state = self.state();
        if state.pending.is_empty() || give_up == GiveUp::Nobody {
            return;
        }
        let expired = state.expired(ids.event_loop().now(), give_up);
        drop(state);
        drop(expired);
    }

    /// Whether no peer is being accepted.
    pub(super) fn is_idle(&self) -> bool {
        self.state().pending.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.state().is_full(self.limit)
    }

    pub(super) fn first_deadline(&self) -> Option<Instant> {
        self.state().first_deadline()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Whether an error concerns the peer alone: it does not complete its handshake, or gets it wrong.
fn is_of_peer(error: &Error) -> bool {
    let is_short =
        matches!(error.cause(), Cause::Refused(_)) && error.raw_os_error() == Some(libc::ENOMEM);
    error.stage() == Stage::Accept && !is_short
}

impl State {
    fn is_full(&self, limit: usize) -> bool {
        self.pending.len() >= limit
    }

    fn first_deadline(&self) -> Option<Instant> {
        self.pending.iter().filter_map(|one| one.until).min()
    }

    fn queues(&self) -> impl Iterator<Item = &Arc<EventQueue>> {
        self.pending.iter().map(|one| one.stream.queue())
    }

    /// All callers, who have to register again: a handshake was added, has another queue, or has
    /// made room. They are woken without the lock.
    fn all_waiters(&self) -> Vec<Waker> {
        self.waiters.iter().cloned().collect()
    }

    /// Takes out the peers that have not completed their handshake in time. They are dropped
    /// without the lock: the executor that destroys their queue pairs may use this thread.
    #[must_use]
    fn expired(&mut self, now: Instant, give_up: GiveUp) -> Vec<PendingPeer> {
        if self.first_deadline().is_none_or(|first| first > now) {
            return Vec::new();
        }
        let (mut expired, mut pending) = (Vec::new(), Vec::new());
        for mut one in std::mem::take(&mut self.pending) {
            let to = if one.expires_or_has_grace(now, give_up) {
                &mut expired
            } else {
                &mut pending
            };
            to.push(one);
        }
        self.pending = pending;
        expired
    }

    /// A handshake with an event, without which the listener goes on meanwhile.
    fn take_next(&mut self) -> Option<(PendingPeer, QueuedEvent)> {
        let with_event = |(index, queue): (usize, &Arc<EventQueue>)| Some((index, queue.pop()?));
        let (index, event) = self.queues().enumerate().find_map(with_event)?;
        Some((self.pending.swap_remove(index), event))
    }
}
