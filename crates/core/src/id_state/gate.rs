//! Which commands may use an id, and which one destroys it.

use std::sync::atomic::{AtomicU32, Ordering};

/// The closed flag; the other bits count commands in flight.
const CLOSED: u32 = 1 << 31;

/// A count of commands in flight and a closed flag in one atomic word.
///
/// A command enters unless the gate is closed. Exactly one caller learns that the
/// gate is closed and empty: the owner if it closes an idle gate, otherwise the
/// last command that leaves. That caller destroys the id in the kernel. So no
/// command uses a number that the kernel may have reassigned, and no lock is held
/// while a command blocks in the kernel.
#[derive(Debug, Default)]
pub(super) struct Gate(AtomicU32);

impl Gate {
    /// Enters a command; returns `false` if the gate is closed.
    #[inline]
    pub(super) fn enter(&self) -> bool {
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
                (state & CLOSED == 0).then_some(state + 1)
            })
            .is_ok()
    }

    /// Leaves; returns `true` if the caller must destroy the id.
    #[inline]
    pub(super) fn leave(&self) -> bool {
        self.0.fetch_sub(1, Ordering::AcqRel) == CLOSED | 1
    }

    /// Closes the gate; returns `true` if the caller must destroy the id.
    pub(super) fn close(&self) -> bool {
        self.0.fetch_or(CLOSED, Ordering::AcqRel) == 0
    }

    /// Whether the gate is closed.
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
        let gate = Gate::default();
        assert!(gate.enter());
        assert!(!gate.leave());
        assert!(gate.close());
        assert!(!gate.enter());
        assert!(!gate.close(), "only the first close destroys");
    }

    #[test]
    fn the_last_command_destroys_a_busy_id() {
        let gate = Gate::default();
        assert!(gate.enter());
        assert!(gate.enter());
        assert!(!gate.close());
        assert!(!gate.leave());
        assert!(gate.leave());
        assert!(gate.is_closed());
    }

    #[test]
    fn exactly_one_thread_destroys() {
        for _ in 0..200 {
            let gate = Gate::default();
            let destroyers = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        while gate.enter() {
                            if gate.leave() {
                                destroyers.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    });
                }
                if gate.close() {
                    destroyers.fetch_add(1, Ordering::Relaxed);
                }
            });
            assert_eq!(destroyers.load(Ordering::Relaxed), 1);
        }
    }
}
