//! Who may still talk to the kernel about an id, and who destroys it.

use std::sync::atomic::{AtomicU32, Ordering};

/// Set once the owner has let go; the other bits count commands in flight.
const CLOSED: u32 = 1 << 31;

/// A count of commands in flight and a closed flag in one atomic word.
///
/// A command enters unless the gate is closed. Exactly one caller is told that
/// the gate is closed and empty: the owner when it closes an idle gate, or else
/// the last command out. That caller destroys the kernel's id, so a number the
/// kernel may already have given to another id is never used, and no lock is
/// held while a command sleeps in the kernel.
#[derive(Debug, Default)]
pub(crate) struct Gate(AtomicU32);

impl Gate {
    /// Counts a command in; `false` when the owner has let go.
    pub(crate) fn enter(&self) -> bool {
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
                (state & CLOSED == 0).then_some(state + 1)
            })
            .is_ok()
    }

    /// Counts a command out; `true` when the caller is to destroy the id.
    pub(crate) fn leave(&self) -> bool {
        self.0.fetch_sub(1, Ordering::AcqRel) == CLOSED | 1
    }

    /// Lets nobody in from now on; `true` when the caller is to destroy the id.
    pub(crate) fn close(&self) -> bool {
        self.0.fetch_or(CLOSED, Ordering::AcqRel) == 0
    }

    /// Whether the owner has let go.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.load(Ordering::Acquire) & CLOSED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn an_idle_gate_is_destroyed_by_its_owner() {
        let gate = Gate::default();
        assert!(gate.enter());
        assert!(!gate.leave());
        assert!(gate.close());
        assert!(!gate.enter());
        assert!(!gate.close(), "only the first to close destroys");
    }

    #[test]
    fn a_busy_gate_is_destroyed_by_the_last_command_out() {
        let gate = Gate::default();
        assert!(gate.enter());
        assert!(gate.enter());
        assert!(!gate.close());
        assert!(!gate.leave());
        assert!(gate.leave());
        assert!(gate.is_closed());
    }

    #[test]
    fn exactly_one_of_many_threads_destroys() {
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
