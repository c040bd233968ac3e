//! The limit of TCP handshakes that are in flight at a time.

use std::sync::Arc;
use std::task::Waker;

use parking_lot::{Mutex, MutexGuard};
use rdmacm_core::CmAddr;

use super::{WaitSource, WaiterQueue, Wakers};

/// Limits the TCP handshakes of an event loop. A handshake with a host that does not answer
/// occupies a thread, an id and a queue pair with its memory until TCP gives up, long after
/// its caller did: one such peer occupies a quarter of them at most.
#[derive(Debug)]
pub(crate) struct HandshakeLimit {
    limit: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    in_flight: usize,
    /// The peers of those whose callers have given up.
    abandoned: Vec<Option<CmAddr>>,
    waiters: WaiterQueue,
}

impl Inner {
    fn abandoned_with(&self, peer: Option<CmAddr>) -> usize {
        self.abandoned.iter().filter(|one| **one == peer).count()
    }

    /// Those to wake, if a handshake may begin: one, unless it may be the turn of another one's peer.
    fn next_waiters(&self, limit: usize) -> Wakers {
        if self.in_flight >= limit {
            Wakers::default()
        } else if self.abandoned.is_empty() {
            self.waiters.next()
        } else {
            self.all_waiters()
        }
    }

    fn all_waiters(&self) -> Wakers {
        self.waiters.iter().cloned().collect()
    }
}

impl HandshakeLimit {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit: limit.max(1),
            inner: Mutex::default(),
        })
    }

    /// How many handshakes may be in flight with a peer whose callers have given up.
    fn share(&self) -> usize {
        (self.limit / 4).max(1)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

/// A handshake with this peer that waits until it may begin.
#[derive(Debug)]
pub(crate) struct HandshakeRequest<'a> {
    limit: &'a Arc<HandshakeLimit>,
    peer: Option<CmAddr>,
}

impl<'a> HandshakeRequest<'a> {
    pub(crate) fn new(limit: &'a Arc<HandshakeLimit>, peer: Option<CmAddr>) -> Self {
        Self { limit, peer }
    }

    /// How many handshakes are in flight that it waits for.
    pub(crate) fn others(&self) -> usize {
        let all = self.limit.limit;
        if self.limit.inner().in_flight < all {
            self.limit.share()
        } else {
            all
        }
    }
}

impl WaitSource for HandshakeRequest<'_> {
    type Item = HandshakePermit;

    fn take(&mut self) -> Option<HandshakePermit> {
        let mut inner = self.limit.inner();
        let is_full = inner.in_flight >= self.limit.limit;
        if is_full || inner.abandoned_with(self.peer) >= self.limit.share() {
            return None;
        }
        inner.in_flight += 1;
        Some(HandshakePermit {
            limit: Arc::clone(self.limit),
            peer: self.peer,
            is_abandoned: false,
        })
    }

    fn register(&mut self, key: u64, waker: &Waker) {
        let replaced = self.limit.inner().waiters.add(key, waker);
        drop(replaced);
    }

    fn deregister(&mut self, key: u64) {
        let mut inner = self.limit.inner();
        let waiter = inner.waiters.remove(key);
        let next = inner.next_waiters(self.limit.limit);
        drop(inner);
        // Not under the lock: dropping the last waker of a task ends the task.
        drop(waiter);
        next.wake();
    }
}

/// The permission for one handshake, until it is dropped.
#[derive(Debug)]
pub(crate) struct HandshakePermit {
    limit: Arc<HandshakeLimit>,
    peer: Option<CmAddr>,
    is_abandoned: bool,
}

impl HandshakePermit {
    /// The caller has given up, and the handshake goes on. Returns those to wake: the one that was woken
    /// for a free permit may be refused now.
    pub(super) fn abandon(&mut self) -> Wakers {
        if std::mem::replace(&mut self.is_abandoned, true) {
            return Wakers::default();
        }
        let mut inner = self.limit.inner();
        inner.abandoned.push(self.peer);
        inner.next_waiters(self.limit.limit)
    }
}

impl Drop for HandshakePermit {
    fn drop(&mut self) {
        let mut inner = self.limit.inner();
        inner.in_flight -= 1;
        let next = if self.is_abandoned {
            let found = inner.abandoned.iter().position(|peer| *peer == self.peer);
            found.map(|index| inner.abandoned.swap_remove(index));
            inner.all_waiters()
        } else {
            inner.next_waiters(self.limit.limit)
        };
        drop(inner);
        next.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::SocketAddr;
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
        let mut source = HandshakeRequest::new(&handshakes, None);
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
        let handshakes = HandshakeLimit::new(0);
        assert!(HandshakeRequest::new(&handshakes, None).take().is_some());
    }

    fn to(handshakes: &Arc<HandshakeLimit>, port: u16) -> HandshakeRequest<'_> {
        let peer = SocketAddr::from(([10, 0, 0, 1], port));
        HandshakeRequest::new(handshakes, Some(peer.into()))
    }

    #[test]
    fn a_silent_peer_gets_a_quarter_of_them() {
        let handshakes = HandshakeLimit::new(8);
        let take = |port| to(&handshakes, port).take();
        let mut silent = [take(1).unwrap(), take(1).unwrap()];
        // Whether it is silent is not known.
        let waited_for = take(1).unwrap();
        for permit in &mut silent {
            permit.abandon().wake();
            permit.abandon().wake();
        }
        assert!(take(1).is_none() && take(2).is_some());
        assert_eq!(to(&handshakes, 1).others(), 2);
        // A waiter whose turn it is not does not keep another one from its turn.
        let woken = [1, 2].map(|port| {
            let woken = Arc::new(WakeCount::default());
            to(&handshakes, port).register(port.into(), &Waker::from(woken.clone()));
            woken
        });
        drop(waited_for);
        assert!(
            woken
                .iter()
                .all(|woken| woken.0.load(Ordering::Relaxed) == 1)
        );
        drop(silent);
        assert!(
            woken
                .iter()
                .all(|woken| woken.0.load(Ordering::Relaxed) == 3)
        );
        assert!(take(1).is_some());
    }

    /// The one that was woken for a free permit is refused in the meantime.
    #[test]
    fn a_waiter_that_is_refused_does_not_keep_another_one_from_its_turn() {
        let handshakes = HandshakeLimit::new(4);
        let mut first = to(&handshakes, 1).take().unwrap();
        let others = [(); 3].map(|()| to(&handshakes, 3).take().unwrap());
        let woken = [1, 2].map(|port| {
            let woken = Arc::new(WakeCount::default());
            to(&handshakes, port).register(port.into(), &Waker::from(woken.clone()));
            woken
        });
        drop(others);
        let woken = || {
            woken
                .each_ref()
                .map(|woken| woken.0.load(Ordering::Relaxed))
        };
        assert_eq!(woken(), [3, 0]);
        first.abandon().wake();
        assert_eq!(woken(), [4, 1]);
        assert!(to(&handshakes, 1).take().is_none() && to(&handshakes, 2).take().is_some());
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
            let mut source = HandshakeRequest::new(&handshakes, None);
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
