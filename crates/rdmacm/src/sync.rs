//! The primitives of the event loop, and of a stream's status.
//!
//! The tests in `tests/interleavings` compile these a second time, with primitives of a
//! scheduler that chooses which thread runs next.

#[cfg(feature = "verbs")]
pub(crate) use std::sync::atomic::AtomicU8;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
// parking_lot has a table of sleeping threads, which a forked child inherits without the threads:
// no thread sleeps there for long.
pub(crate) use std::sync::{Condvar, Mutex as CondvarMutex};

pub(crate) use parking_lot::{Mutex, MutexGuard};
