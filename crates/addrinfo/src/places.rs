//! How much may be under way at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A number of places that is the same for all of a directory's handles.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(Arc<AtomicUsize>);

/// How many places there are, those included whose users were given up.
pub(crate) const PLACES: usize = 64;

/// One of the places, free again when dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<AtomicUsize>);

impl Places {
    /// A place; `None` where all are taken.
    pub(crate) fn take(&self) -> Option<Place> {
        let one_more = |taken: usize| (taken < PLACES).then_some(taken + 1);
        let (set, fetch) = (Ordering::AcqRel, Ordering::Acquire);
        let taken = self.0.fetch_update(set, fetch, one_more);
        taken.ok().map(|_| Place(Arc::clone(&self.0)))
    }

    #[cfg(test)]
    pub(crate) fn taken(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
