//! The leader among the threads that wait for a completion.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Elects one thread at a time to wait on the channel. If several waited, one could read
/// the notification while the others sleep although there are completions for them. The
/// leader wakes the next thread when it returns.
#[derive(Debug, Default)]
pub(super) struct Turn {
    taken: Mutex<bool>,
    free: Condvar,
}

/// Proof of being the leader.
pub(super) struct Taken<'a>(&'a Turn);

impl Turn {
    /// Waits to become the leader; `None` if the deadline passes.
    pub(super) fn take(&self, until: Option<Instant>) -> Option<Taken<'_>> {
        let mut taken = self.taken();
        while *taken {
            taken = match until {
                None => self
                    .free
                    .wait(taken)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.checked_duration_since(Instant::now())?;
                    let waited = self.free.wait_timeout(taken, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        *taken = true;
        Some(Taken(self))
    }

    fn taken(&self) -> MutexGuard<'_, bool> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *self.0.taken() = false;
        self.0.free.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_turn_is_one_threads_and_passes_on() {
        let turn = Turn::default();
        let first = turn.take(None).unwrap();
        let soon = Instant::now() + Duration::from_millis(1);
        assert!(turn.take(Some(soon)).is_none());
        std::thread::scope(|scope| {
            let others = [(); 3].map(|()| scope.spawn(|| turn.take(None).is_some()));
            drop(first);
            assert!(others.into_iter().all(|other| other.join().unwrap()));
        });
        assert!(turn.take(Some(Instant::now())).is_some());
    }
}
