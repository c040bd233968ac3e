//! A limit on concurrent lookups.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the lookups of a directory, which its clones share.
#[derive(Clone, Debug, Default)]
pub(crate) struct LookupLimit(Arc<AtomicUsize>);

/// The most lookups at a time, abandoned ones included.
pub(crate) const MAX_LOOKUPS: usize = 64;

/// The right to run one lookup, released on drop.
#[derive(Debug)]
pub(crate) struct LookupPermit(Arc<AtomicUsize>);

impl LookupLimit {
    /// Acquires a permit; `None` if [`MAX_LOOKUPS`] are in use.
    pub(crate) fn try_acquire(&self) -> Option<LookupPermit> {
        let one_more = |taken: usize| (taken < MAX_LOOKUPS).then_some(taken + 1);
        let (set, fetch) = (Ordering::AcqRel, Ordering::Acquire);
        let taken = self.0.fetch_update(set, fetch, one_more);
        taken.ok().map(|_| LookupPermit(Arc::clone(&self.0)))
    }

    #[cfg(test)]
    pub(crate) fn in_use(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

impl Drop for LookupPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
