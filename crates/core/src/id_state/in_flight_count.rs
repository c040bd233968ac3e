//! Which commands may use an id, and which one destroys it.

use std::sync::atomic::{AtomicU32, Ordering};

/// The closed flag; the other bits count commands in flight.
const CLOSED: u32 = 1 << 31;

/// A count of commands in flight and a closed flag in one atomic word.
///
/// A command begins unless the count is closed. Exactly one caller learns that the count
/// is closed and zero: the owner if it closes a count of zero, otherwise the last command
/// that ends. That caller destroys the id in the kernel. So no command uses a number that
/// the kernel may have reassigned, and no lock is held while a command blocks in the kernel.
#[derive(Debug, Default)]
pub(super) struct InFlightCount(AtomicU32);

impl InFlightCount {
    /// Counts a command; returns `false` if the count is closed.
    #[inline]
    pub(super) fn begin(&self) -> bool {
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
                (state & CLOSED == 0).then_some(state + 1)
            })
            .is_ok()
    }

    /// Counts the end of a command; returns `true` if the caller must destroy the id.
    #[inline]
    pub(super) fn end(&self) -> bool {
        self.0.fetch_sub(1, Ordering::AcqRel) == CLOSED | 1
    }

    /// Closes the count: no command begins any more. Returns `true` if the caller must destroy
    /// the id.
    pub(super) fn close(&self) -> bool {
        self.0.fetch_or(CLOSED, Ordering::AcqRel) == 0
    }

    /// Whether it is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.0.load(Ordering::Acquire) & CLOSED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn the_owner_destroys_an_idle_id() {
        let count = InFlightCount::default();
        assert!(count.begin());
        assert!(!count.end());
        assert!(count.close());
        assert!(!count.begin());
        assert!(!count.close(), "only the first close destroys");
    }

    #[test]
    fn the_last_command_destroys_a_busy_id() {
        let count = InFlightCount::default();
        assert!(count.begin());
        assert!(count.begin());
        assert!(!count.close());
        assert!(!count.end());
        assert!(count.end());
        assert!(count.is_closed());
    }

    #[test]
    fn exactly_one_thread_destroys() {
        for _ in 0..200 {
            let count = InFlightCount::default();
            let destroyers = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        while count.begin() {
                            if count.end() {
                                destroyers.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    });
                }
                if count.close() {
                    destroyers.fetch_add(1, Ordering::Relaxed);
                }
            });
            assert_eq!(destroyers.load(Ordering::Relaxed), 1);
        }
    }
}
