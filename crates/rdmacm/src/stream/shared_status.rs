//! A stream's status, and what is read of it without its lock.

use std::ops::{Deref, DerefMut};

use super::status::Status;
use crate::sync::{AtomicU8, Mutex, MutexGuard, Ordering};

/// A direction was closed, or the stream has failed.
const ENDED: u8 = 1;
const FAILED: u8 = 1 << 1;
const HAS_WAITERS: u8 = 1 << 2;

/// The status of a stream. What each read and write asks is read without the lock.
///
/// A waiter registers and then looks, under the lock of the state that it waits for. Whoever
/// changes the state under that lock, and asks for waiters afterwards, finds those that have
/// looked before.
#[derive(Debug)]
pub(super) struct SharedStatus {
    status: Mutex<Status>,
    flags: AtomicU8,
}

impl SharedStatus {
    /// That of an open stream, which nobody waits for.
    pub(super) fn new(status: Status) -> Self {
        Self {
            status: Mutex::new(status),
            flags: AtomicU8::new(0),
        }
    }

    pub(super) fn lock(&self) -> StatusGuard<'_> {
        StatusGuard {
            status: self.status.lock(),
            flags: &self.flags,
        }
    }

    /// Whether both sides may read and write.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.flags() & ENDED == 0
    }

    pub(super) fn has_failed(&self) -> bool {
        self.flags() & FAILED != 0
    }

    #[inline]
    pub(super) fn has_waiters(&self) -> bool {
        self.flags() & HAS_WAITERS != 0
    }

    #[inline]
    fn flags(&self) -> u8 {
        self.flags.load(Ordering::Acquire)
    }
}

/// The status under its lock. Dropping it publishes what is read without the lock.
#[derive(Debug)]
pub(super) struct StatusGuard<'a> {
    status: MutexGuard<'a, Status>,
    flags: &'a AtomicU8,
}

impl Deref for StatusGuard<'_> {
    type Target = Status;

    fn deref(&self) -> &Status {
        &self.status
    }
}

impl DerefMut for StatusGuard<'_> {
    fn deref_mut(&mut self) -> &mut Status {
        &mut self.status
    }
}

impl Drop for StatusGuard<'_> {
    fn drop(&mut self) {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let has_failed = self.status.failure().is_some();
        let flags = flag(has_failed || !self.status.shutdown.is_open(), ENDED)
            | flag(has_failed, FAILED)
            | flag(self.status.has_waiters(), HAS_WAITERS);
        self.flags.store(flags, Ordering::Release);
    }
}
