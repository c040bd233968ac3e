//! Credits for completions.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The entries of a completion queue, and how many are reserved.
#[derive(Debug)]
pub(super) struct CqCredits(Mutex<Usage>);

#[derive(Debug)]
pub(super) struct Usage {
    pub(super) entries: u32,
    pub(super) reserved: u32,
}

impl CqCredits {
    pub(super) fn new(entries: u32) -> Self {
        Self(Mutex::new(Usage {
            entries,
            reserved: 0,
        }))
    }

    /// While this guard is held, no credit is reserved or returned.
    pub(super) fn lock(&self) -> MutexGuard<'_, Usage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves `count` credits if `spare` more stay free; otherwise returns `false`.
    pub(super) fn reserve(&self, count: usize, spare: usize) -> bool {
        let mut usage = self.lock();
        let sum = |now: u32, more: usize| now.checked_add(u32::try_from(more).ok()?);
        let Some(reserved) = sum(usage.reserved, count) else {
            return false;
        };
        let fits = sum(reserved, spare).is_some_and(|sum| sum <= usage.entries);
        if fits {
            usage.reserved = reserved;
        }
        fits
    }

    pub(super) fn release(&self, requests: usize) {
        let mut usage = self.lock();
        // At most what was reserved, which fits.
        let less = u32::try_from(requests).unwrap_or(u32::MAX);
        usage.reserved = usage.reserved.saturating_sub(less);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_reserved_than_the_queue_holds() {
        let credits = CqCredits::new(3);
        assert!(credits.reserve(2, 0));
        assert!(!credits.reserve(2, 0));
        assert!(!credits.reserve(usize::MAX, 0));
        assert!(!credits.reserve(1, 1));
        assert!(credits.reserve(1, 0));
        assert!(!credits.reserve(1, 0));
        credits.release(2);
        assert!(credits.reserve(0, 2));
        assert!(!credits.reserve(0, 3));
        assert!(credits.reserve(2, 0));
        assert_eq!(credits.lock().reserved, 3);
    }
}
