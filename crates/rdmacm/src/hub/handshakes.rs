//! How many handshakes of TCP's may be under way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use super::Place;

/// Counts a node's handshakes. One towards a peer that is not there occupies a thread,
/// an id and a queue pair with its memory until TCP gives up, long after its caller did.
#[derive(Debug)]
pub(crate) struct Handshakes {
    limit: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    under_way: usize,
    waiters: BTreeMap<u64, Waker>,
}

impl Inner {
    fn heir(&self, limit: usize) -> Option<Waker> {
        let waiter = self.waiters.values().next().cloned();
        waiter.filter(|_| self.under_way < limit)
    }
}

/// One handshake, until it is over.
#[derive(Debug)]
pub(crate) struct Permit(Arc<Handshakes>);

impl Handshakes {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit: limit.max(1),
            inner: Mutex::default(),
        })
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Whole between any two statements, so a panic elsewhere while it was locked
    /// leaves nothing broken.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place for &Arc<Handshakes> {
    type Item = Permit;

    fn take(&mut self) -> Option<Permit> {
        let mut inner = self.inner();
        if inner.under_way >= self.limit {
            return None;
        }
        inner.under_way += 1;
        Some(Permit(Arc::clone(self)))
    }

    fn wait(&mut self, key: u64, waker: &Waker) {
        let former = self.inner().waiters.insert(key, waker.clone());
        drop(former);
    }

    fn leave(&mut self, key: u64) {
        let mut inner = self.inner();
        let waiter = inner.waiters.remove(&key);
        let heir = inner.heir(self.limit);
        drop(inner);
        // Not under the lock: the last to know a task ends it.
        drop(waiter);
        if let Some(heir) = heir {
            heir.wake();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut inner = self.0.inner();
        inner.under_way -= 1;
        let heir = inner.heir(self.0.limit);
        drop(inner);
        if let Some(heir) = heir {
            heir.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_end_of_one_is_the_turn_of_the_next() {
        let handshakes = Handshakes::new(1);
        let mut place = &handshakes;
        let first = place.take().unwrap();
        assert!(place.take().is_none());
        let woken = Arc::new(Woken::default());
        place.wait(1, &Waker::from(woken.clone()));
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
        drop(first);
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        // One that was woken and goes instead leaves it to another.
        let other = Arc::new(Woken::default());
        place.wait(2, &Waker::from(other.clone()));
        place.leave(1);
        assert_eq!(other.0.load(Ordering::Relaxed), 1);
        assert!(place.take().is_some());
    }

    #[test]
    fn none_at_all_would_never_connect() {
        assert_eq!(Handshakes::new(0).limit(), 1);
    }
}
