//! Credits for completions.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The entries of a completion queue, and how many of them are free, so that posting and
/// polling take no lock.
#[derive(Debug)]
pub(crate) struct CqCredits {
    entries: AtomicU32,
    free: AtomicU64,
}

impl CqCredits {
    pub(crate) fn new(entries: u32) -> Self {
        Self {
            entries: AtomicU32::new(entries),
            free: AtomicU64::new(entries.into()),
        }
    }

    /// How many entries there are.
    pub(crate) fn entries(&self) -> u32 {
        self.entries.load(Ordering::Acquire)
    }

    /// How many entries are reserved.
    #[cfg(test)]
    pub(crate) fn reserved(&self) -> u32 {
        let free = self.free.load(Ordering::Acquire);
        u32::try_from(u64::from(self.entries()) - free).unwrap()
    }

    /// Reserves one credit if there is one; otherwise returns `false`.
    #[inline]
    pub(crate) fn reserve_one(&self) -> bool {
        let free = self.free.load(Ordering::Relaxed);
        // Mostly the first try succeeds, which is outside of the loop: that costs less.
        free > 0 && (self.take(free, 1).is_ok() || self.reserve(1, 0))
    }

    /// Reserves `count` credits if `spare` more stay free; otherwise returns `false`. Takes none
    /// then, not even for a moment, in which others would be refused.
    #[inline]
    pub(crate) fn reserve(&self, count: u32, spare: u32) -> bool {
        let (count, spare) = (u64::from(count), u64::from(spare));
        let mut free = self.free.load(Ordering::Relaxed);
        while free >= count + spare {
            match self.take(free, count) {
                Ok(_) => return true,
                Err(now) => free = now,
            }
        }
        false
    }

    /// Takes `count` of `free` credits, unless there are other than that.
    #[inline]
    fn take(&self, free: u64, count: u64) -> Result<u64, u64> {
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        self.free
            .compare_exchange(free, free - count, success, failure)
    }

    /// Returns credits that were reserved.
    #[inline]
    pub(crate) fn release(&self, count: u32) {
        self.free.fetch_add(count.into(), Ordering::AcqRel);
    }

    /// Changes the number of entries if no more are reserved; otherwise returns `false`. One
    /// caller at a time.
    pub(super) fn set_entries(&self, entries: u32) -> bool {
        let before = self.entries();
        if entries < before {
            if !self.reserve(before - entries, 0) {
                return false;
            }
        } else {
            self.release(entries - before);
        }
        self.entries.store(entries, Ordering::Release);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    /// One thread returns its credit and takes it again, while another one tries to take it.
    #[test]
    fn a_credit_that_nobody_has_is_not_refused() {
        let credits = CqCredits::new(1);
        let (taken, is_done) = (AtomicU32::new(0), AtomicBool::new(false));
        let mut refused = 0;
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    if credits.reserve_one() {
                        taken.fetch_add(1, Ordering::Relaxed);
                        credits.release(1);
                    }
                }
            });
            while taken.load(Ordering::Relaxed) == 0 || !credits.reserve_one() {
                thread::yield_now();
            }
            let until = Instant::now() + Duration::from_millis(300);
            while Instant::now() < until {
                let before = taken.load(Ordering::Relaxed);
                credits.release(1);
                if !credits.reserve_one() {
                    while !credits.reserve_one() {}
                    // The other thread has counted it before it returned it.
                    refused += u32::from(taken.load(Ordering::Relaxed) == before);
                }
            }
            is_done.store(true, Ordering::Relaxed);
        });
        assert_eq!(refused, 0);
    }

    #[test]
    fn no_more_is_reserved_than_the_queue_holds() {
        let credits = CqCredits::new(3);
        assert!(credits.reserve(2, 0));
        assert!(!credits.reserve(2, 0));
        assert!(!credits.reserve(u32::MAX, 0));
        assert!(!credits.reserve(1, 1));
        assert!(credits.reserve(1, 0));
        assert!(!credits.reserve(1, 0));
        assert!(!credits.reserve_one());
        credits.release(2);
        assert!(credits.reserve(0, 2));
        assert!(!credits.reserve(0, 3));
        assert!(credits.reserve_one() && credits.reserve_one());
        assert!(!credits.reserve_one());
        assert_eq!(credits.reserved(), 3);
        assert!(!credits.set_entries(2));
        assert!(credits.set_entries(u32::MAX));
        assert!(!credits.reserve(u32::MAX, 0) && credits.reserve(1, u32::MAX - 4));
        assert!(!credits.set_entries(3) && credits.set_entries(4));
        assert_eq!((credits.entries(), credits.reserved()), (4, 4));
        assert!(!credits.reserve_one());
    }
}
