//! Limits on concurrent lookups.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Counts the lookups and the tasks of a directory, which its clones share. Made by the
/// first lookup or clone: numeric addresses need neither.
#[derive(Debug, Default)]
pub(crate) struct LookupLimits(OnceLock<Arc<Running>>);

impl Clone for LookupLimits {
    fn clone(&self) -> Self {
        Self(Arc::clone(self.running()).into())
    }
}

/// How many run now.
#[derive(Debug, Default)]
struct Running {
    lookups: AtomicUsize,
    tasks: AtomicUsize,
}

/// The most lookups at a time, abandoned ones included, and the most tasks.
pub(crate) const MAX_LOOKUPS: usize = 64;

/// The right to run one lookup or task, released on drop.
#[derive(Debug)]
pub(crate) struct LookupPermit {
    running: Arc<Running>,
    counter: fn(&Running) -> &AtomicUsize,
}

impl LookupLimits {
    fn running(&self) -> &Arc<Running> {
        self.0.get_or_init(Arc::default)
    }

    /// Acquires a permit for a lookup; `None` if [`MAX_LOOKUPS`] are in use.
    pub(crate) fn try_lookup(&self) -> Option<LookupPermit> {
        self.try_acquire(|running| &running.lookups)
    }

    /// Acquires a permit for a resolution on a thread of its own, likewise.
    pub(crate) fn try_task(&self) -> Option<LookupPermit> {
        self.try_acquire(|running| &running.tasks)
    }

    fn try_acquire(&self, counter: fn(&Running) -> &AtomicUsize) -> Option<LookupPermit> {
        let one_more = |taken: usize| (taken < MAX_LOOKUPS).then_some(taken + 1);
        let (set, fetch) = (Ordering::AcqRel, Ordering::Acquire);
        let running = self.running();
        let taken = counter(running).fetch_update(set, fetch, one_more);
        taken.ok().map(|_| LookupPermit {
            running: Arc::clone(running),
            counter,
        })
    }

    #[cfg(test)]
    pub(crate) fn lookups_in_use(&self) -> usize {
        self.running().lookups.load(Ordering::Acquire)
    }
}

impl Drop for LookupPermit {
    fn drop(&mut self) {
        (self.counter)(&self.running).fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_the_limits_and_lookups_do_not_count_as_tasks() {
        let limits = LookupLimits::default();
        let clone = limits.clone();
        let lookups: Vec<_> = (0..MAX_LOOKUPS).map(|_| limits.try_lookup()).collect();
        assert!(lookups.iter().all(Option::is_some));
        assert!(clone.try_lookup().is_none() && clone.clone().try_task().is_some());
        drop(lookups);
        assert!(clone.try_lookup().is_some());
    }
}
