//! What has come for an id and was not read yet.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;

use rdmacm_core::{Event, EventKind, IdHandle, QueuePair, Result};

use super::Place;
use crate::ending::Ending;
use crate::trace::Trace;

/// One thing that came for an id.
#[derive(Debug)]
pub(crate) enum Letter {
    /// An event.
    Event(Box<Event>),
    /// An offloaded command has returned.
    Returned(Result<()>),
    /// There will be no more.
    Stop,
}

/// An id's letters, and who waits for them.
#[derive(Default)]
pub(crate) struct Mailbox {
    inner: Mutex<Inner>,
    trace: Trace,
}

#[derive(Default)]
struct Inner {
    letters: VecDeque<Letter>,
    /// How many connect requests may wait here; more are refused.
    room: Option<usize>,
    requests: usize,
    waiters: BTreeMap<u64, Waker>,
    answering: Option<Answering>,
    stopped: bool,
    parted: bool,
    #[cfg(feature = "verbs")]
    given_up: bool,
    ending: Option<Ending>,
}

/// Who answers when the peer disconnects: a RoCE peer waits for it.
struct Answering {
    id: IdHandle,
    queue_pair: Weak<dyn QueuePair>,
}

impl Mailbox {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// A listener's, for so many connect requests.
    pub(crate) fn with_room(room: usize) -> Arc<Self> {
        let mailbox = Self::default();
        mailbox.inner().room = Some(room);
        Arc::new(mailbox)
    }

    pub(crate) fn trace(&self) -> &Trace {
        &self.trace
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn deliver(&self, letter: Letter) {
        let mut inner = self.inner();
        if is_request(&letter) {
            if inner.stopped || inner.room.is_some_and(|room| inner.requests >= room) {
                drop(inner);
                // Dropping a request refuses it, which tells the peer at once.
                drop(letter);
                return;
            }
            inner.requests += 1;
        }
        inner.letters.push_back(letter);
        let waiter = inner.waiters.values().next().cloned();
        drop(inner);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }

    /// The oldest letter.
    pub(crate) fn take(&self) -> Option<Letter> {
        let mut inner = self.inner();
        let letter = inner.letters.pop_front();
        if letter.as_ref().is_some_and(is_request) {
            inner.requests -= 1;
        }
        match letter {
            None if inner.stopped => Some(Letter::Stop),
            letter => letter,
        }
    }

    /// Whoever waits, now or later, is told to stop once the box is empty; what
    /// is there stays, and no request comes in any more.
    pub(crate) fn stop(&self) {
        let mut inner = self.inner();
        inner.stopped = true;
        let waiters: Vec<_> = inner.waiters.values().cloned().collect();
        drop(inner);
        waiters.into_iter().for_each(Waker::wake);
    }

    /// How the connection ended, once somebody has read it.
    pub(crate) fn ending(&self) -> Option<Ending> {
        self.inner().ending
    }

    /// The connection has ended: whoever waits for that, now or later, is told.
    pub(crate) fn end(&self, ending: Ending) {
        self.inner().ending.get_or_insert(ending);
        self.stop();
    }

    /// How the connection ended, where an event that lies here or was read before
    /// says so.
    pub(crate) fn ended(&self) -> Option<Ending> {
        loop {
            match self.take()? {
                Letter::Event(event) => {
                    if let Some(ending) = Ending::of(&event) {
                        self.end(ending);
                    }
                }
                Letter::Returned(_) => {}
                Letter::Stop => return self.ending(),
            }
        }
    }

    pub(crate) fn wait(&self, key: u64, waker: &Waker) {
        let former = self.inner().waiters.insert(key, waker.clone());
        drop(former);
    }

    /// One who waited does so no more; what it was woken for is the next one's.
    pub(crate) fn leave(&self, key: u64) {
        let mut inner = self.inner();
        let waiter = inner.waiters.remove(&key);
        let next = inner.waiters.values().next().cloned();
        let heir = next.filter(|_| !inner.letters.is_empty() || inner.stopped);
        drop(inner);
        // Not under the lock: the last to know a task ends it.
        drop(waiter);
        if let Some(heir) = heir {
            heir.wake();
        }
    }

    /// From now on the peer's parting is answered by whoever reads it.
    pub(crate) fn answer_with(&self, id: &IdHandle, queue_pair: Weak<dyn QueuePair>) {
        self.inner().answering = Some(Answering {
            id: id.clone(),
            queue_pair,
        });
    }

    /// This side parts by itself: there is nothing to answer from now on. Whether
    /// the connection is over already.
    pub(crate) fn part(&self) -> bool {
        let mut inner = self.inner();
        inner.answering = None;
        inner.parted
    }

    /// This side parts because its queue pair is done for: whether there is
    /// something left to part from, and nobody has said so before.
    #[cfg(feature = "verbs")]
    pub(super) fn give_up(&self) -> bool {
        let mut inner = self.inner();
        let before = std::mem::replace(&mut inner.given_up, true);
        !before && !inner.parted
    }

    pub(super) fn answer(&self) {
        let mut inner = self.inner();
        inner.parted = true;
        let Some(Answering { id, queue_pair }) = inner.answering.take() else {
            return;
        };
        drop(inner);
        // Its owner gone, the id is destroyed, which answers as well.
        if let Some(queue_pair) = queue_pair.upgrade() {
            let _ = id.with_queue_pair(queue_pair.as_ref()).disconnect();
        }
    }
}

impl Place for &Mailbox {
    type Item = Letter;

    fn take(&mut self) -> Option<Letter> {
        Mailbox::take(self)
    }

    fn wait(&mut self, key: u64, waker: &Waker) {
        Mailbox::wait(self, key, waker);
    }

    fn leave(&mut self, key: u64) {
        Mailbox::leave(self, key);
    }
}

/// Where the end of a connection comes, for any number who wait.
#[derive(Debug)]
pub(crate) struct End<'a>(pub(crate) &'a Mailbox);

impl Place for End<'_> {
    type Item = Ending;

    fn take(&mut self) -> Option<Ending> {
        self.0.ended()
    }

    fn wait(&mut self, key: u64, waker: &Waker) {
        self.0.wait(key, waker);
    }

    fn leave(&mut self, key: u64) {
        self.0.leave(key);
    }
}

fn is_request(letter: &Letter) -> bool {
    matches!(letter, Letter::Event(event) if event.kind() == EventKind::ConnectRequest)
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.inner();
        f.debug_struct("Mailbox")
            .field("letters", &inner.letters.len())
            .field("waiters", &inner.waiters.len())
            .finish_non_exhaustive()
    }
}
