//! The primitives of the event loop, and of a stream's status.
//!
//! The tests in `tests/interleavings` compile these a second time, with primitives of a
//! scheduler that chooses which thread runs next.

#[cfg(feature = "verbs")]
pub(crate) use std::sync::atomic::AtomicU8;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};

/// Waits until the condition variable is notified, or for no reason.
pub(crate) fn wait<'a, T>(changed: &Condvar, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    changed.wait(&mut guard);
    guard
}
