//! The primitives of the event loop.
//!
//! The tests in `tests/interleavings` compile the event loop a second time, with primitives
//! of a scheduler that chooses which thread runs next.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
