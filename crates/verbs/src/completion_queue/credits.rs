//! Credits for completions.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

/// The entries of a completion queue, and how many of them are free, so that posting and
/// polling take no lock.
#[derive(Debug)]
pub(crate) struct CqCredits {
    entries: AtomicU32,
    /// Negative for a moment, while a caller that took too many puts it back.
    free: AtomicI64,
}

impl CqCredits {
    pub(crate) fn new(entries: u32) -> Self {
        Self {
            entries: AtomicU32::new(entries),
            free: AtomicI64::new(entries.into()),
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
        u32::try_from(i64::from(self.entries()) - free).unwrap()
    }

    /// Reserves one credit if there is one; otherwise returns `false`, also if there is none only
    /// because another caller is about to return one. [`reserve`](Self::reserve) waits for that.
    #[inline]
    pub(crate) fn reserve_one(&self) -> bool {
        if self.free.fetch_sub(1, Ordering::AcqRel) > 0 {
            return true;
        }
        self.release(1);
        false
    }

    /// Reserves `count` credits if `spare` more stay free; otherwise returns `false`.
    pub(crate) fn reserve(&self, count: u32, spare: u32) -> bool {
        let (count, spare) = (i64::from(count), i64::from(spare));
        let mut free = self.free.load(Ordering::Relaxed);
        loop {
            if free >= count + spare {
                let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
                match self
                    .free
                    .compare_exchange(free, free - count, success, failure)
                {
                    Ok(_) => return true,
                    Err(now) => free = now,
                }
            } else if free < 0 {
                std::hint::spin_loop();
                free = self.free.load(Ordering::Relaxed);
            } else {
                return false;
            }
        }
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
    use super::*;

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
