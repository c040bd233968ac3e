//! The limit of TCP handshakes that are in flight at a time.

use std::sync::Arc;
use std::task::Waker;

use parking_lot::{Mutex, MutexGuard};

use super::{WaitSource, WaiterQueue, Wakers};

/// Limits the TCP handshakes of an event loop. A handshake with a host that does not answer
/// occupies a thread, an id and a queue pair with its memory until TCP gives up, long after
/// its caller did.
#[derive(Debug)]
pub(crate) struct HandshakeLimit {
    limit: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    in_flight: usize,
    waiters: WaiterQueue,
}

impl Inner {
    /// The waiter to wake, if a handshake may begin.
    fn next_waiter(&self, limit: usize) -> Wakers {
        if self.in_flight < limit {
            self.waiters.next()
        } else {
            Wakers::default()
        }
    }
}

/// The permission for one handshake, until it is dropped.
#[derive(Debug)]
pub(crate) struct HandshakePermit(Arc<HandshakeLimit>);

impl HandshakeLimit {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit: limit.max(1),
            inner: Mutex::default(),
        })
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl WaitSource for &Arc<HandshakeLimit> {
    type Item = HandshakePermit;

    fn take(&mut self) -> Option<HandshakePermit> {
        let mut inner = self.inner();
        if inner.in_flight >= self.limit {
            return None;
        }
        inner.in_flight += 1;
        Some(HandshakePermit(Arc::clone(self)))
    }

    fn register(&mut self, key: u64, waker: &Waker) {
        let replaced = self.inner().waiters.add(key, waker);
        drop(replaced);
    }

    fn deregister(&mut self, key: u64) {
        let mut inner = self.inner();
        let waiter = inner.waiters.remove(key);
        let next = inner.next_waiter(self.limit);
        drop(inner);
        // Not under the lock: dropping the last waker of a task ends the task.
        drop(waiter);
        next.wake();
    }
}

impl Drop for HandshakePermit {
    fn drop(&mut self) {
        let mut inner = self.0.inner();
        inner.in_flight -= 1;
        let next = inner.next_waiter(self.0.limit);
        drop(inner);
        next.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use proptest::prelude::*;

    use super::*;

    #[derive(Default)]
    struct WakeCount(AtomicUsize);

    impl Wake for WakeCount {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_end_of_a_handshake_wakes_the_next_waiter() {
        let handshakes = HandshakeLimit::new(1);
        let mut source = &handshakes;
        let first = source.take().unwrap();
        assert!(source.take().is_none());
        let woken = Arc::new(WakeCount::default());
        source.register(1, &Waker::from(woken.clone()));
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
        drop(first);
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        // A waiter that was woken and gives up wakes another one.
        let other = Arc::new(WakeCount::default());
        source.register(2, &Waker::from(other.clone()));
        source.deregister(1);
        assert_eq!(other.0.load(Ordering::Relaxed), 1);
        assert!(source.take().is_some());
    }

    #[test]
    fn the_limit_is_at_least_one() {
        assert_eq!(HandshakeLimit::new(0).limit(), 1);
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Take,
        /// One of the permits.
        Drop(usize),
        Register(u64),
        Deregister(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            Just(Step::Take),
            (0..4_usize).prop_map(Step::Drop),
            (0..4_u64).prop_map(Step::Register),
            (0..4_u64).prop_map(Step::Deregister),
        ]
    }

    proptest! {
        #[test]
        fn permits_are_limited_and_wake_the_first_waiter(
            limit in 1..4_usize,
            steps in proptest::collection::vec(step(), 0..60),
        ) {
            let handshakes = HandshakeLimit::new(limit);
            let mut source = &handshakes;
            let mut permits = Vec::new();
            let mut waiters = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Take => {
                        let permit = source.take();
                        prop_assert_eq!(permit.is_some(), permits.len() < limit);
                        permits.extend(permit);
                    }
                    Step::Drop(one) if one < permits.len() => drop(permits.swap_remove(one)),
                    Step::Drop(_) => continue,
                    Step::Register(key) => {
                        let woken = Arc::new(WakeCount::default());
                        source.register(key, &Waker::from(woken.clone()));
                        waiters.insert(key, woken);
                    }
                    Step::Deregister(key) => {
                        source.deregister(key);
                        waiters.remove(&key);
                    }
                }
                let may_begin = permits.len() < limit;
                let first = waiters.values().next().map(|woken| woken.0.load(Ordering::Relaxed));
                if matches!(step, Step::Drop(_) | Step::Deregister(_)) && may_begin {
                    prop_assert_ne!(first, Some(0));
                }
            }
        }
    }
}
