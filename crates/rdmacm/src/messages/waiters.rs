//! Who waits for what of a queue pair.

use std::collections::BTreeMap;
use std::task::Waker;

use rdmacm_verbs::WorkId;

/// What one waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Interest {
    /// A message of the peer.
    Arrival,
    /// Room for one more request.
    Room,
    /// The end of a request.
    Done(WorkId),
    /// The end of all requests.
    Quiet,
    /// The end of everything.
    Trouble,
}

/// Those who wait, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Waiters(BTreeMap<(Interest, u64), Waker>);

impl Waiters {
    /// The waker it replaces, for the caller to drop without a lock: the last to know
    /// a task ends it.
    #[must_use]
    pub(super) fn add(&mut self, interest: Interest, key: u64, waker: &Waker) -> Option<Waker> {
        self.0.insert((interest, key), waker.clone())
    }

    #[must_use]
    pub(super) fn remove(&mut self, interest: Interest, key: u64) -> Option<Waker> {
        self.0.remove(&(interest, key))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first of those who wait for this.
    pub(super) fn first(&self, interest: Interest) -> Option<Waker> {
        let mut of = self.0.range((interest, 0)..=(interest, u64::MAX));
        of.next().map(|(_, waker)| waker.clone())
    }

    pub(super) fn all(&self) -> impl Iterator<Item = Waker> {
        self.0.values().cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_those_who_wait_for_the_same_is_found() {
        let mut waiters = Waiters::default();
        assert!(waiters.add(Interest::Room, 2, Waker::noop()).is_none());
        assert!(waiters.first(Interest::Arrival).is_none());
        assert!(waiters.first(Interest::Room).is_some());
        assert!(waiters.add(Interest::Room, 2, Waker::noop()).is_some());
        assert!(waiters.remove(Interest::Quiet, 2).is_none());
        assert!(waiters.remove(Interest::Room, 2).is_some());
        assert!(waiters.is_empty());
    }
}
