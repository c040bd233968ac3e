//! The waiters of a queue pair.

use std::collections::VecDeque;
use std::task::Waker;

use rdmacm_verbs::WorkId;

use crate::event_loop::WaiterQueue;

/// What a waiter waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Interest {
    /// A message of the peer.
    ReceiveReady,
    /// Room for one more request.
    SendReady,
    /// The completion of a request.
    Completion(WorkId),
    /// The completion of all requests that were posted up to this one.
    Flushed(Option<WorkId>),
    /// The end of the connection.
    Closed,
}

/// The waiters, by what they wait for.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    receive_ready: WaiterQueue,
    send_ready: WaiterQueue,
    closed: WaiterQueue,
    /// Those that wait for a request or a flush, sorted.
    others: VecDeque<(Interest, u64, Waker)>,
}

impl Waiters {
    /// Returns the waker that it replaces, which the caller drops without a lock: dropping
    /// the last waker of a task ends the task.
    #[must_use]
    pub(super) fn add(&mut self, interest: Interest, key: u64, waker: &Waker) -> Option<Waker> {
        match self.queue_mut(interest) {
            Some(queue) => queue.add(key, waker),
            None => match self.find(interest, key) {
                Ok(index) => {
                    let (.., known) = self.others.get_mut(index)?;
                    Some(std::mem::replace(known, waker.clone()))
                }
                Err(index) => {
                    self.others.insert(index, (interest, key, waker.clone()));
                    None
                }
            },
        }
    }

    #[must_use]
    pub(super) fn remove(&mut self, interest: Interest, key: u64) -> Option<Waker> {
        if let Some(queue) = self.queue_mut(interest) {
            return queue.remove(key);
        }
        let index = self.find(interest, key).ok()?;
        self.others.remove(index).map(|(.., waker)| waker)
    }

    fn find(&self, interest: Interest, key: u64) -> Result<usize, usize> {
        let of = |one: &(Interest, u64, Waker)| (one.0, one.1);
        self.others.binary_search_by_key(&(interest, key), of)
    }

    fn queue_mut(&mut self, interest: Interest) -> Option<&mut WaiterQueue> {
        match interest {
            Interest::ReceiveReady => Some(&mut self.receive_ready),
            Interest::SendReady => Some(&mut self.send_ready),
            Interest::Closed => Some(&mut self.closed),
            Interest::Completion(_) | Interest::Flushed(_) => None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.receive_ready.is_empty() && !self.wait_for_requests()
    }

    pub(super) fn len(&self) -> usize {
        self.receive_ready.len() + self.send_ready.len() + self.closed.len() + self.others.len()
    }

    /// The only waiter, if it waits for a message.
    pub(super) fn only_receiver(&self) -> Option<&Waker> {
        let is_only = self.receive_ready.len() == 1 && !self.wait_for_requests();
        self.receive_ready.first().filter(|_| is_only)
    }

    /// Whether there are any that the completion of a request may concern.
    pub(super) fn wait_for_requests(&self) -> bool {
        !(self.send_ready.is_empty() && self.closed.is_empty() && self.others.is_empty())
    }

    /// Whether there are any that a message, or the end of the connection, may concern.
    pub(super) fn wait_for_peer(&self) -> bool {
        !(self.receive_ready.is_empty() && self.closed.is_empty())
    }

    /// The first waiter with this interest.
    pub(super) fn first(&self, interest: Interest) -> Option<&Waker> {
        match interest {
            Interest::ReceiveReady => self.receive_ready.first(),
            Interest::SendReady => self.send_ready.first(),
            Interest::Closed => self.closed.first(),
            Interest::Completion(_) | Interest::Flushed(_) => {
                let index = self.others.partition_point(|one| one.0 < interest);
                let first = self.others.get(index).filter(|one| one.0 == interest);
                first.map(|(.., waker)| waker)
            }
        }
    }

    /// Those that wait for all requests up to one, of which `is_flushed` says that they have
    /// completed.
    pub(super) fn flushed(
        &self,
        is_flushed: impl Fn(Option<WorkId>) -> bool,
    ) -> impl Iterator<Item = &Waker> {
        let flushed = move |one: &&(Interest, u64, Waker)| match one.0 {
            Interest::Flushed(last) => is_flushed(last),
            _ => false,
        };
        self.others.iter().filter(flushed).map(|(.., waker)| waker)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Waker> {
        let queues = [&self.receive_ready, &self.send_ready, &self.closed].into_iter();
        queues
            .flat_map(WaiterQueue::iter)
            .chain(self.others.iter().map(|(.., waker)| waker))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::event_loop::new_waker;

    #[test]
    fn the_first_waiter_with_an_interest_is_found() {
        let mut waiters = Waiters::default();
        assert!(waiters.add(Interest::SendReady, 2, &new_waker()).is_none());
        assert!(waiters.first(Interest::ReceiveReady).is_none());
        assert!(waiters.first(Interest::SendReady).is_some());
        assert!(waiters.add(Interest::SendReady, 2, &new_waker()).is_some());
        assert!(waiters.remove(Interest::Flushed(None), 2).is_none());
        assert!(waiters.remove(Interest::SendReady, 2).is_some());
        assert!(waiters.is_empty());
    }

    /// A waiter with an interest in one of a few things.
    fn waiter() -> impl Strategy<Value = (Interest, u64)> {
        let interest = prop_oneof![
            Just(Interest::ReceiveReady),
            Just(Interest::SendReady),
            Just(Interest::Flushed(None)),
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
                    waiters.add(interest, key, &new_waker())
                } else {
                    model.remove(&(interest, key));
                    waiters.remove(interest, key)
                };
                prop_assert_eq!(former.is_some(), was_there);
            }
            prop_assert_eq!(waiters.is_empty(), model.is_empty());
            prop_assert_eq!(waiters.all().count(), model.len());
            for interest in [Interest::ReceiveReady, Interest::SendReady, Interest::Closed] {
                let is_there = model.iter().any(|(one, _)| *one == interest);
                prop_assert_eq!(waiters.first(interest).is_some(), is_there);
            }
            let expected = model.iter().filter(|one| one.0 == Interest::Flushed(None)).count();
            prop_assert_eq!(waiters.flushed(|last| last.is_none()).count(), expected);
            prop_assert_eq!(waiters.flushed(|last| last.is_some()).count(), 0);
        }
    }
}
