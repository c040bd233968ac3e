//! The waiters of a queue pair.

use std::collections::BTreeMap;
use std::task::Waker;

use rdmacm_verbs::WorkId;

/// What a waiter waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Interest {
    /// A message of the peer.
    Arrival,
    /// Room for one more request.
    Room,
    /// The completion of a request.
    Completion(WorkId),
    /// The completion of this many requests, since the connection began.
    Flushed(u64),
    /// The end of the connection.
    Closed,
}

/// The waiters, in the order in which they began to wait.
#[derive(Debug, Default)]
pub(super) struct Waiters(BTreeMap<(Interest, u64), Waker>);

impl Waiters {
    /// Returns the waker that it replaces, which the caller drops without a lock: dropping
    /// the last waker of a task ends the task.
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

    /// The first waiter with this interest.
    pub(super) fn first(&self, interest: Interest) -> Option<Waker> {
        let mut of = self.0.range((interest, 0)..=(interest, u64::MAX));
        of.next().map(|(_, waker)| waker.clone())
    }

    /// Those that wait for the completion of at most this many requests.
    pub(super) fn flushed(&self, requests: u64) -> impl Iterator<Item = Waker> {
        let begin = (Interest::Flushed(0), 0);
        let of = self
            .0
            .range(begin..=(Interest::Flushed(requests), u64::MAX));
        of.map(|(_, waker)| waker.clone())
    }

    pub(super) fn all(&self) -> impl Iterator<Item = Waker> {
        self.0.values().cloned()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_waiter_with_an_interest_is_found() {
        let mut waiters = Waiters::default();
        assert!(waiters.add(Interest::Room, 2, Waker::noop()).is_none());
        assert!(waiters.first(Interest::Arrival).is_none());
        assert!(waiters.first(Interest::Room).is_some());
        assert!(waiters.add(Interest::Room, 2, Waker::noop()).is_some());
        assert!(waiters.remove(Interest::Flushed(0), 2).is_none());
        assert!(waiters.remove(Interest::Room, 2).is_some());
        assert!(waiters.is_empty());
    }

    #[test]
    fn waiters_for_fewer_requests_are_found() {
        let mut waiters = Waiters::default();
        for (requests, key) in [(3, 1), (5, 2), (3, 3)] {
            let replaced = waiters.add(Interest::Flushed(requests), key, Waker::noop());
            assert!(replaced.is_none());
        }
        assert_eq!(waiters.flushed(2).count(), 0);
        assert_eq!(waiters.flushed(3).count(), 2);
        assert_eq!(waiters.flushed(u64::MAX).count(), 3);
    }

    /// A waiter with an interest in one of a few things.
    fn waiter() -> impl Strategy<Value = (Interest, u64)> {
        let interest = prop_oneof![
            Just(Interest::Arrival),
            Just(Interest::Room),
            (0..4_u64).prop_map(Interest::Flushed),
            Just(Interest::Closed),
        ];
        (interest, 0..4_u64)
    }

    proptest! {
        #[test]
        fn waiters_are_those_that_were_added_and_not_removed(
            steps in vec((waiter(), any::<bool>()), 0..50)
        ) {
            let mut waiters = Waiters::default();
            let mut model = BTreeSet::new();
            for ((interest, key), is_added) in steps {
                let was_there = model.contains(&(interest, key));
                let former = if is_added {
                    model.insert((interest, key));
                    waiters.add(interest, key, Waker::noop())
                } else {
                    model.remove(&(interest, key));
                    waiters.remove(interest, key)
                };
                prop_assert_eq!(former.is_some(), was_there);
            }
            prop_assert_eq!(waiters.is_empty(), model.is_empty());
            prop_assert_eq!(waiters.all().count(), model.len());
            for interest in [Interest::Arrival, Interest::Room, Interest::Closed] {
                let is_there = model.iter().any(|(one, _)| *one == interest);
                prop_assert_eq!(waiters.first(interest).is_some(), is_there);
            }
            for requests in 0..4 {
                let flushed = |one: &&(Interest, u64)| {
                    matches!(one.0, Interest::Flushed(of) if of <= requests)
                };
                let expected = model.iter().filter(flushed).count();
                prop_assert_eq!(waiters.flushed(requests).count(), expected);
            }
        }
    }
}
