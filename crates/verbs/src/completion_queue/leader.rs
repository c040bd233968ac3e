//! The leader among the threads that wait for a completion.

// Not of parking_lot, which has a table of sleeping threads: a forked child inherits it without the
// threads.
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Elects one thread at a time to wait on the channel. If several waited, one could read
/// the notification while the others sleep although there are completions for them. The
/// leader wakes the next thread when it returns.
#[derive(Debug, Default)]
pub(super) struct LeaderElection {
    is_led: Mutex<bool>,
    vacated: Condvar,
}

/// Proof of being the leader.
pub(super) struct LeaderGuard<'a>(&'a LeaderElection);

impl LeaderElection {
    /// Waits to become the leader; `None` if the deadline passes.
    pub(super) fn wait_to_lead(&self, until: Option<Instant>) -> Option<LeaderGuard<'_>> {
        let mut is_led = self.is_led();
        while *is_led {
            is_led = match until {
                None => {
                    let vacated = self.vacated.wait(is_led);
                    vacated.unwrap_or_else(PoisonError::into_inner)
                }
                Some(until) => {
                    let left = until.checked_duration_since(Instant::now())?;
                    let waited = self.vacated.wait_timeout(is_led, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        *is_led = true;
        Some(LeaderGuard(self))
    }

    fn is_led(&self) -> MutexGuard<'_, bool> {
        self.is_led.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LeaderGuard<'_> {
    fn drop(&mut self) {
        *self.0.is_led() = false;
        self.0.vacated.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn one_thread_leads_until_its_guard_is_dropped() {
        let election = LeaderElection::default();
        let first = election.wait_to_lead(None).unwrap();
        let soon = Instant::now() + Duration::from_millis(1);
        assert!(election.wait_to_lead(Some(soon)).is_none());
        std::thread::scope(|scope| {
            let others = [(); 3].map(|()| scope.spawn(|| election.wait_to_lead(None).is_some()));
            drop(first);
            assert!(others.into_iter().all(|other| other.join().unwrap()));
        });
        assert!(election.wait_to_lead(Some(Instant::now())).is_some());
    }
}
