//! The primitives of the event loop, and of a stream's status.
//!
//! The tests in `tests/interleavings` compile these a second time, with primitives of a
//! scheduler that chooses which thread runs next.

#[cfg(feature = "verbs")]
pub(crate) use std::sync::atomic::AtomicU8;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
