//! Credits for completions.

use std::sync::atomic::{AtomicU64, Ordering};

/// The entries of a completion queue, and how many are reserved: two numbers of 32 bits in
/// one word, so that posting and polling take no lock.
#[derive(Debug)]
pub(crate) struct CqCredits(AtomicU64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) entries: u32,
    pub(crate) reserved: u32,
}

impl Usage {
    fn of(word: u64) -> Self {
        Self {
            // Each is a half.
            entries: u32::try_from(word >> 32).unwrap_or_default(),
            reserved: u32::try_from(word & 0xffff_ffff).unwrap_or_default(),
        }
    }

    fn word(self) -> u64 {
        u64::from(self.entries) << 32 | u64::from(self.reserved)
    }
}

impl CqCredits {
    pub(crate) fn new(entries: u32) -> Self {
        let reserved = 0;
        Self(AtomicU64::new(Usage { entries, reserved }.word()))
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage::of(self.0.load(Ordering::Acquire))
    }

    /// Reserves `count` credits if `spare` more stay free; otherwise returns `false`.
    pub(crate) fn reserve(&self, count: u32, spare: u32) -> bool {
        let reserve = |word| {
            let usage = Usage::of(word);
            let reserved = usage.reserved.checked_add(count)?;
            let fits = reserved.checked_add(spare)? <= usage.entries;
            fits.then(|| Usage { reserved, ..usage }.word())
        };
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, reserve)
            .is_ok()
    }

    /// Returns credits that were reserved.
    pub(crate) fn release(&self, count: u32) {
        // They are in the lower half, which does not underflow.
        self.0.fetch_sub(count.into(), Ordering::AcqRel);
    }

    /// Changes the number of entries if no more are reserved; otherwise returns `false`.
    pub(super) fn set_entries(&self, entries: u32) -> bool {
        let resize = |word| {
            let usage = Usage::of(word);
            (usage.reserved <= entries).then(|| Usage { entries, ..usage }.word())
        };
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, resize)
            .is_ok()
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
        credits.release(2);
        assert!(credits.reserve(0, 2));
        assert!(!credits.reserve(0, 3));
        assert!(credits.reserve(2, 0));
        assert_eq!(credits.usage().reserved, 3);
        assert!(!credits.set_entries(2));
        assert!(credits.set_entries(u32::MAX));
        assert!(!credits.reserve(u32::MAX, 0) && credits.reserve(1, u32::MAX - 4));
        assert!(!credits.set_entries(3) && credits.set_entries(4));
    }
}
