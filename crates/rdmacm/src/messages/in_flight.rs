//! The requests that the device has.

use std::collections::VecDeque;

use rdmacm_verbs::WorkId;

/// A request that the device has, by who waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InFlight {
    /// No one. Its memory, if it has any, belongs to the pool.
    Copied,
    /// A caller, for its result and its memory.
    Awaited,
    /// No one any more.
    Abandoned,
    /// No one: it only shows that the peer is there.
    KeepAlive,
}

/// The requests in the order of posting, which is that of completion mostly: the first one is
/// looked at first.
#[derive(Debug)]
pub(super) struct InFlightRequests(VecDeque<(WorkId, InFlight)>);

impl InFlightRequests {
    /// None yet, and room for so many.
    pub(super) fn with_capacity(requests: usize) -> Self {
        Self(VecDeque::with_capacity(requests))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn add(&mut self, work: WorkId, waiter: InFlight) {
        self.0.push_back((work, waiter));
    }

    #[inline]
    pub(super) fn remove(&mut self, work: WorkId) -> Option<InFlight> {
        match self.0.front() {
            Some((first, _)) if *first == work => self.0.pop_front().map(|(_, waiter)| waiter),
            _ => self.remove_later(work),
        }
    }

    #[cold]
    fn remove_later(&mut self, work: WorkId) -> Option<InFlight> {
        let index = self.find(work)?;
        self.0.remove(index).map(|(_, waiter)| waiter)
    }

    /// The one that was posted last.
    pub(super) fn last(&self) -> Option<WorkId> {
        self.0.back().map(|(work, _)| *work)
    }

    /// Whether neither this request is among them nor one that was posted before it.
    pub(super) fn are_all_after(&self, last: WorkId) -> bool {
        let first = self.0.front();
        first.is_none_or(|(first, _)| last.is_before(*first))
    }

    pub(super) fn contains(&self, work: WorkId) -> bool {
        self.find(work).is_some()
    }

    /// No one waits for it any more.
    pub(super) fn abandon(&mut self, work: WorkId) {
        let request = self.find(work).and_then(|index| self.0.get_mut(index));
        if let Some((_, waiter)) = request {
            *waiter = InFlight::Abandoned;
        }
    }

    fn find(&self, work: WorkId) -> Option<usize> {
        self.0.iter().position(|(known, _)| *known == work)
    }
}
