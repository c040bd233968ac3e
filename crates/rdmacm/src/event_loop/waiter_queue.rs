//! Tasks and threads that wait for one thing.

use std::collections::VecDeque;
use std::task::Waker;

use super::Wakers;

/// How a task waits, in the order in which they are woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaiterKind {
    /// In a future that runs the event loop, and is not kept without being polled.
    Driver,
    /// In a future, which is polled once it is woken, or dropped.
    Future,
    /// It has called a `poll_` method. It may have gone since then: nothing tells.
    Caller,
}

/// The first key of a future.
pub(super) const FUTURES: u64 = 1 << 62;

/// The first key of a caller.
const CALLERS: u64 = 1 << 63;

impl WaiterKind {
    /// The key of a waiter of this kind, whose key as a future would be this one.
    pub(super) fn key(self, future: u64) -> u64 {
        match self {
            Self::Driver => future - FUTURES,
            Self::Future => future,
            Self::Caller => future | CALLERS,
        }
    }
}

/// Wakers in the order of their keys: drivers, futures and threads in the order in which they began
/// to wait, and then callers of `poll_` methods. Mostly there is at most one, which takes no allocation.
///
/// Wakers that come out are woken or dropped without a lock: dropping the last waker of a
/// task ends the task.
#[derive(Debug, Default)]
pub(crate) struct WaiterQueue {
    first: Option<(u64, Waker)>,
    /// Empty if there is no first.
    others: VecDeque<(u64, Waker)>,
}

impl WaiterQueue {
    /// Returns the waker that it replaces.
    #[must_use]
    pub(crate) fn add(&mut self, key: u64, waker: &Waker) -> Option<Waker> {
        match &mut self.first {
            None => self.first = Some((key, waker.clone())),
            Some((first, known)) if *first == key => return replace(known, waker),
            Some((first, _)) if *first > key => {
                let later = self.first.replace((key, waker.clone()));
                self.others.extend(later);
                self.others.rotate_right(1);
            }
            Some(_) => return self.add_later(key, waker),
        }
        None
    }

    fn add_later(&mut self, key: u64, waker: &Waker) -> Option<Waker> {
        if self.others.back().is_none_or(|(last, _)| *last < key) {
            self.others.push_back((key, waker.clone()));
            return None;
        }
        match self.find(key) {
            Ok(index) => {
                let (_, known) = self.others.get_mut(index)?;
                replace(known, waker)
            }
            Err(index) => {
                self.others.insert(index, (key, waker.clone()));
                None
            }
        }
    }

    #[must_use]
    pub(crate) fn remove(&mut self, key: u64) -> Option<Waker> {
        if self.first.as_ref().is_some_and(|(first, _)| *first == key) {
            let removed = self.first.take();
            if !self.others.is_empty() {
                self.first = self.others.pop_front();
            }
            return removed.map(|(_, waker)| waker);
        }
        let index = self.find(key).ok()?;
        self.others.remove(index).map(|(_, waker)| waker)
    }

    fn find(&self, key: u64) -> Result<usize, usize> {
        self.others.binary_search_by_key(&key, |(key, _)| *key)
    }

    /// The waker of a waiter.
    pub(crate) fn get(&self, key: u64) -> Option<&Waker> {
        match &self.first {
            Some((first, waker)) if *first == key => Some(waker),
            _ => self
                .others
                .get(self.find(key).ok()?)
                .map(|(_, waker)| waker),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    /// The one to wake first.
    pub(crate) fn first(&self) -> Option<&Waker> {
        self.first.as_ref().map(|(_, waker)| waker)
    }

    /// Those to wake so that one of them looks: the first driver, future or thread; if there is none,
    /// all callers, of which some may have gone.
    pub(crate) fn next(&self) -> Wakers {
        match &self.first {
            Some((first, _)) if *first >= CALLERS => self.iter().cloned().collect(),
            _ => self.first().cloned().into(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Waker> {
        self.first
            .iter()
            .chain(&self.others)
            .map(|(_, waker)| waker)
    }
}

/// Returns the waker that is replaced, unless it is the same.
fn replace(known: &mut Waker, waker: &Waker) -> Option<Waker> {
    let is_same = known.will_wake(waker);
    (!is_same).then(|| std::mem::replace(known, waker.clone()))
}

/// A waker that wakes nobody and is equal to no other, for tests.
#[cfg(test)]
pub(crate) fn new_waker() -> Waker {
    struct Nobody(#[expect(dead_code, reason = "for an address of its own")] bool);
    impl std::task::Wake for Nobody {
        fn wake(self: std::sync::Arc<Self>) {}
    }
    std::sync::Arc::new(Nobody(true)).into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_same_waker_is_not_replaced() {
        let mut queue = WaiterQueue::default();
        let waker = new_waker();
        assert!(queue.add(1, &waker).is_none());
        assert!(queue.add(1, &waker).is_none());
        assert!(
            queue
                .add(1, &new_waker())
                .is_some_and(|old| old.will_wake(&waker))
        );
    }

    #[test]
    fn one_driver_or_future_or_all_callers_are_next() {
        let mut queue = WaiterQueue::default();
        assert!(queue.next().is_empty());
        let [caller, other, future, driver] = [(); 4].map(|()| new_waker());
        for (number, waker) in [(1, &caller), (2, &other)] {
            let key = WaiterKind::Caller.key(FUTURES + number);
            assert!(queue.add(key, waker).is_none());
        }
        let next: Vec<_> = queue.next().into_iter().collect();
        assert!(next.len() == 2 && next[0].will_wake(&caller) && next[1].will_wake(&other));
        let later = [
            (3, WaiterKind::Future, &future),
            (4, WaiterKind::Driver, &driver),
        ];
        for (number, kind, waker) in later {
            assert!(queue.add(kind.key(FUTURES + number), waker).is_none());
            let next: Vec<_> = queue.next().into_iter().collect();
            assert!(next.len() == 1 && next[0].will_wake(waker));
        }
    }

    proptest! {
        #[test]
        fn it_equals_a_sorted_set(steps in vec((any::<bool>(), 0..10_u64), 0..40)) {
            let mut queue = WaiterQueue::default();
            let mut model = BTreeSet::new();
            for (adds, key) in steps {
                if adds {
                    let replaced = queue.add(key, &new_waker());
                    prop_assert_eq!(replaced.is_none(), model.insert(key));
                } else {
                    prop_assert_eq!(queue.remove(key).is_some(), model.remove(&key));
                }
                let keys = queue.first.iter().chain(&queue.others).map(|(key, _)| key);
                prop_assert!(keys.eq(&model));
                prop_assert_eq!(queue.first().is_some(), !model.is_empty());
                prop_assert_eq!(queue.iter().count(), queue.len());
            }
        }
    }
}
