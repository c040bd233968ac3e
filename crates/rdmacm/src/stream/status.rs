//! Whether a stream is open, and who waits for it.

use std::task::Waker;

use rdmacm_rsocket::Shutdown;

use super::failure::StreamFailure;
use crate::data::KeepAlive;
use crate::event_loop::{WaiterQueue, WaitingThread, Wakers};

/// What a waiter waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamInterest {
    /// Bytes of the peer, or the end.
    Readable,
    /// Room for at least one byte.
    Writable,
    /// The completion of all that was posted.
    Flushed,
    /// More room in the send queue, or more credits.
    Progress,
}

/// What both halves of a stream share.
#[derive(Debug)]
pub(super) struct Status {
    pub(super) shutdown: Shutdown,
    failure: Option<StreamFailure>,
    pub(super) keep_alive: KeepAlive,
    readers: WaiterQueue,
    writers: WaiterQueue,
    flushers: WaiterQueue,
    for_progress: WaiterQueue,
    /// Of the stream's descriptor, which is woken with any waiter.
    descriptor: Option<Waker>,
    /// Of a thread that has waited for bytes, for the next one.
    pub(super) spare_thread: Option<WaitingThread>,
}

impl StreamInterest {
    const ALL: [Self; 4] = [
        Self::Readable,
        Self::Writable,
        Self::Flushed,
        Self::Progress,
    ];
}

impl Status {
    pub(super) fn new(keep_alive: KeepAlive) -> Self {
        Self {
            shutdown: Shutdown::new(),
            failure: None,
            keep_alive,
            readers: WaiterQueue::default(),
            writers: WaiterQueue::default(),
            flushers: WaiterQueue::default(),
            for_progress: WaiterQueue::default(),
            descriptor: None,
            spare_thread: None,
        }
    }

    /// From now on this waker is woken by all that concerns any waiter.
    pub(super) fn wake_descriptor(&mut self, waker: Waker) {
        self.descriptor = Some(waker);
    }

    pub(super) fn failure(&self) -> Option<&StreamFailure> {
        self.failure.as_ref()
    }

    /// Nothing more can be transferred. The first reason is kept; consequences are replaced
    /// by a reason.
    pub(super) fn fail(&mut self, failure: StreamFailure, wakers: &mut Wakers) {
        let known = self.failure.as_ref();
        if known.is_some_and(|known| known.is_reason() || !failure.is_reason()) {
            return;
        }
        self.failure = Some(failure);
        self.wake_all(wakers);
    }

    pub(super) fn queue_mut(&mut self, interest: StreamInterest) -> &mut WaiterQueue {
        match interest {
            StreamInterest::Readable => &mut self.readers,
            StreamInterest::Writable => &mut self.writers,
            StreamInterest::Flushed => &mut self.flushers,
            StreamInterest::Progress => &mut self.for_progress,
        }
    }

    pub(super) fn queue(&self, interest: StreamInterest) -> &WaiterQueue {
        match interest {
            StreamInterest::Readable => &self.readers,
            StreamInterest::Writable => &self.writers,
            StreamInterest::Flushed => &self.flushers,
            StreamInterest::Progress => &self.for_progress,
        }
    }

    pub(super) fn has_waiters(&self) -> bool {
        let is_awaited = self.queues().iter().any(|queue| !queue.is_empty());
        is_awaited || self.descriptor.is_some()
    }

    /// Whether anybody waits besides a single waiter that is woken. Of several, nobody knows
    /// whether each is woken for all that it waits for.
    pub(super) fn has_others(&self, wakers: &Wakers) -> bool {
        match self.waiters() {
            0 => false,
            1 => !self.wakers().all(|waker| wakers.contains(waker)),
            _ => true,
        }
    }

    /// How many wait, with the descriptor.
    fn waiters(&self) -> usize {
        let in_queues: usize = self.queues().iter().map(|queue| queue.len()).sum();
        in_queues + usize::from(self.descriptor.is_some())
    }

    /// What somebody waits for. Whoever waits for the descriptor may wait for anything that a read
    /// or a write needs.
    pub(super) fn interests(&self) -> impl Iterator<Item = StreamInterest> + use<> {
        let by_descriptor = [StreamInterest::Readable, StreamInterest::Progress];
        let is_awaited = |interest| {
            let has_descriptor = self.descriptor.is_some() && by_descriptor.contains(&interest);
            has_descriptor || !self.queue(interest).is_empty()
        };
        let all = StreamInterest::ALL.map(|interest| is_awaited(interest).then_some(interest));
        all.into_iter().flatten()
    }

    /// The only waiter, if it waits for bytes.
    pub(super) fn only_reader(&self) -> Option<&Waker> {
        let is_only = self.readers.len() == 1 && self.waiters() == 1;
        self.readers.first().filter(|_| is_only)
    }

    /// Wakes the waiter that comes [first](WaiterQueue::first).
    pub(super) fn wake_first(&self, interest: StreamInterest, wakers: &mut Wakers) {
        wakers.add_missing(self.queue(interest).first());
        wakers.add_missing(&self.descriptor);
    }

    /// Wakes those that wait for progress, which may be enough for each of them.
    pub(super) fn made_progress(&self, wakers: &mut Wakers) {
        wakers.add_missing(self.for_progress.iter());
        wakers.add_missing(&self.descriptor);
    }

    pub(super) fn wake_all(&self, wakers: &mut Wakers) {
        wakers.add_missing(self.wakers());
    }

    /// Those of all waiters, and of the descriptor.
    fn wakers(&self) -> impl Iterator<Item = &Waker> {
        let queues = self.queues().into_iter();
        queues.flat_map(WaiterQueue::iter).chain(&self.descriptor)
    }

    fn queues(&self) -> [&WaiterQueue; 4] {
        [
            &self.readers,
            &self.writers,
            &self.flushers,
            &self.for_progress,
        ]
    }
}
