//! Credits for completions.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many completions a queue holds, and how many of these may still come.
#[derive(Debug)]
pub(super) struct CqCredits(Mutex<Share>);

#[derive(Debug)]
pub(super) struct Share {
    pub(super) entries: u32,
    pub(super) set_aside: u32,
}

impl CqCredits {
    pub(super) fn of(entries: u32) -> Self {
        Self(Mutex::new(Share {
            entries,
            set_aside: 0,
        }))
    }

    /// For as long as this is held nothing is set aside or returned.
    pub(super) fn lock(&self) -> MutexGuard<'_, Share> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets room aside for so many, where so many more are left free; `false` where
    /// there is none.
    pub(super) fn set_aside(&self, requests: usize, left: usize) -> bool {
        let mut share = self.lock();
        let sum = |now: u32, more: usize| now.checked_add(u32::try_from(more).ok()?);
        let Some(taken) = sum(share.set_aside, requests) else {
            return false;
        };
        let fits = sum(taken, left).is_some_and(|sum| sum <= share.entries);
        if fits {
            share.set_aside = taken;
        }
        fits
    }

    pub(super) fn give_back(&self, requests: usize) {
        let mut share = self.lock();
        // No more than was set aside, which is a word.
        let less = u32::try_from(requests).unwrap_or(u32::MAX);
        share.set_aside = share.set_aside.saturating_sub(less);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_set_aside_than_there_is() {
        let credits = CqCredits::of(3);
        assert!(credits.set_aside(2, 0));
        assert!(!credits.set_aside(2, 0));
        assert!(!credits.set_aside(usize::MAX, 0));
        assert!(!credits.set_aside(1, 1));
        assert!(credits.set_aside(1, 0));
        assert!(!credits.set_aside(1, 0));
        credits.give_back(2);
        assert!(credits.set_aside(0, 2));
        assert!(!credits.set_aside(0, 3));
        assert!(credits.set_aside(2, 0));
        assert_eq!(credits.lock().set_aside, 3);
    }
}
