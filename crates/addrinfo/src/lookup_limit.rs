//! Limits on concurrent lookups.

use std::process;
// Not of parking_lot, which has a table of sleeping threads: a forked child inherits it without the
// threads.
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// Counts the lookups and the threads of an `AddrInfoResolver`, which its clones share. Made by the
/// first of them or a clone: numeric addresses need neither.
#[derive(Debug, Default)]
pub(crate) struct LookupLimits(OnceLock<Arc<Running>>);

impl Clone for LookupLimits {
    fn clone(&self) -> Self {
        Self(Arc::clone(self.0.get_or_init(Running::new)).into())
    }
}

/// How many run now, in one process.
#[derive(Debug)]
struct Running {
    process: u32,
    lookups: Counter,
    tasks: Counter,
    destructions: Counter,
    /// In a forked child: the threads that would release these permits, and may hold these locks,
    /// are not there.
    in_child: OnceLock<Arc<Running>>,
}

impl Running {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            process: process::id(),
            lookups: Counter::default(),
            tasks: Counter::default(),
            destructions: Counter::default(),
            in_child: OnceLock::new(),
        })
    }
}

/// The permits in use, and what is notified when one is released.
#[derive(Debug, Default)]
struct Counter {
    in_use: Mutex<usize>,
    released: Condvar,
}

impl Counter {
    fn in_use(&self) -> MutexGuard<'_, usize> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The most lookups at a time, abandoned ones included, the most tasks, and the most destructions.
pub(crate) const MAX_LOOKUPS: usize = 64;

/// The right to run one lookup, task or destruction, released on drop.
#[derive(Debug)]
pub(crate) struct LookupPermit {
    running: Arc<Running>,
    counter: fn(&Running) -> &Counter,
}

impl LookupLimits {
    fn running(&self) -> &Arc<Running> {
        let process = process::id();
        let mut running = self.0.get_or_init(Running::new);
        while running.process != process {
            running = running.in_child.get_or_init(Running::new);
        }
        running
    }

    /// Waits for a permit for a lookup, of which there are [`MAX_LOOKUPS`]; `None` if all
    /// are in use until the deadline.
    pub(crate) fn lookup(&self, until: Option<Instant>) -> Option<LookupPermit> {
        let running = self.running();
        let counter = &running.lookups;
        let mut in_use = counter.in_use();
        while *in_use >= MAX_LOOKUPS {
            in_use = match until {
                None => {
                    let released = counter.released.wait(in_use);
                    released.unwrap_or_else(PoisonError::into_inner)
                }
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return None;
                    }
                    let waited = counter.released.wait_timeout(in_use, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        *in_use += 1;
        Some(LookupPermit {
            running: Arc::clone(running),
            counter: |running| &running.lookups,
        })
    }

    /// Acquires a permit for a resolution on a thread of its own; `None` if
    /// [`MAX_LOOKUPS`] run.
    pub(crate) fn try_task(&self) -> Option<LookupPermit> {
        self.try_acquire(|running| &running.tasks)
    }

    /// Acquires a permit for a thread that destroys queries which were given up; `None` if
    /// [`MAX_LOOKUPS`] run.
    pub(crate) fn try_destruction(&self) -> Option<LookupPermit> {
        self.try_acquire(|running| &running.destructions)
    }

    fn try_acquire(&self, counter: fn(&Running) -> &Counter) -> Option<LookupPermit> {
        let running = self.running();
        let mut in_use = counter(running).in_use();
        if *in_use >= MAX_LOOKUPS {
            return None;
        }
        *in_use += 1;
        Some(LookupPermit {
            running: Arc::clone(running),
            counter,
        })
    }

    #[cfg(test)]
    pub(crate) fn lookups_in_use(&self) -> usize {
        *self.running().lookups.in_use()
    }
}

impl Drop for LookupPermit {
    fn drop(&mut self) {
        let counter = (self.counter)(&self.running);
        *counter.in_use() -= 1;
        counter.released.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_the_limits_and_each_kind_has_its_own() {
        let limits = LookupLimits::default();
        let clone = limits.clone();
        let now = Some(Instant::now());
        let lookups: Vec<_> = (0..MAX_LOOKUPS).map(|_| limits.lookup(now)).collect();
        assert!(lookups.iter().all(Option::is_some));
        assert!(clone.lookup(now).is_none() && clone.clone().try_task().is_some());
        drop(lookups);
        assert!(clone.lookup(now).is_some());
        let destructions: Vec<_> = (0..MAX_LOOKUPS).map(|_| limits.try_destruction()).collect();
        assert!(destructions.iter().all(Option::is_some));
        assert!(clone.try_destruction().is_none() && clone.try_task().is_some());
    }
}
