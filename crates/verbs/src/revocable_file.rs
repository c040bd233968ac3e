//! A file that can be closed while others use it.
//!
//! # Safety
//! One of the modules with `unsafe`: users borrow the file without a lock. One atomic word
//! counts them and says whether the file is closed. A user counts itself in and then looks at
//! the word that it has changed: either the file was open, so that the closing thread, which
//! closes the word first and then waits for the count to become zero, waits for this user, or
//! the file was closed, so that the user does not touch it. A flag in that word says whether the
//! closing thread has taken the file out; otherwise the file is dropped with the last owner.
#![expect(unsafe_code, reason = "a file that is borrowed without a lock")]

use std::cell::UnsafeCell;
use std::fmt;
use std::fs::File;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicUsize, Ordering};
// Not of parking_lot, which has a table of sleeping threads: a forked child inherits it without the
// threads.
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// An open file, until it is closed. Closing waits for the calls that are using it, and later
/// calls find it closed: no descriptor is used after the kernel may have reused its number.
pub(crate) struct RevocableFile<F = File> {
    /// How it was closed, if it was, and how many calls are using it.
    users: AtomicUsize,
    /// Taken out when it is closed.
    file: UnsafeCell<ManuallyDrop<F>>,
    /// Held while it is being closed.
    closing: Mutex<()>,
    /// Taken to wait for the last user, and by the last user.
    draining: Mutex<()>,
    drained: Condvar,
}

/// Set once no more users are let in.
const CLOSED: usize = 1;
/// Set before the file is taken out.
const TAKEN: usize = 2;
/// Set if nobody is to wait for anybody.
const ABANDONED: usize = 4;
/// One user.
const USER: usize = 8;

// SAFETY: any number of threads borrow the file, and one of them takes and drops it, after the
// last of them has returned the borrow.
unsafe impl<F: Send + Sync> Sync for RevocableFile<F> {}

impl<F> RevocableFile<F> {
    pub(crate) fn new(file: F) -> Self {
        Self {
            users: AtomicUsize::new(0),
            file: UnsafeCell::new(ManuallyDrop::new(file)),
            closing: Mutex::new(()),
            draining: Mutex::new(()),
            drained: Condvar::new(),
        }
    }

    /// Calls `using` with the file; `None` if it is closed, after whoever closes it is done.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each request")]
    pub(crate) fn with<T>(&self, using: impl FnOnce(&F) -> T) -> Option<T> {
        // Acquire: whatever the last closing thread did is done.
        if self.users.fetch_add(USER, Ordering::Acquire) & CLOSED != 0 {
            self.find_closed();
            return None;
        }
        // Leaves also if `using` panics.
        let _user = User(self);
        let file = self.file.get();
        // SAFETY: this user was counted while the file was open. So the thread that closes it,
        // which alone changes it, does so after this user has left.
        let file = unsafe { &*file };
        Some(using(file))
    }

    #[cold]
    #[inline(never)]
    fn find_closed(&self) {
        drop(User(self));
        if self.users.load(Ordering::Relaxed) & ABANDONED == 0 {
            drop(lock(&self.closing));
        }
    }

    /// Closes it after a last use; `None` if it is closed already.
    pub(crate) fn close<T>(&self, last: impl FnOnce(&F) -> T) -> Option<T> {
        // One that finds it closed returns after it was closed.
        let _closing = lock(&self.closing);
        if self.users.fetch_or(CLOSED, Ordering::Relaxed) & CLOSED != 0 {
            return None;
        }
        let mut draining = lock(&self.draining);
        // Acquire: what the users did is done. Those that come and find it closed only count
        // themselves in and out.
        while self.users.load(Ordering::Acquire) != CLOSED {
            let drained = self.drained.wait(draining);
            draining = drained.unwrap_or_else(PoisonError::into_inner);
        }
        drop(draining);
        let file = self.file.get();
        // SAFETY: it is closed and was seen without users, so every later user finds it closed
        // and does not touch the file. No other thread is here, as only one has closed it.
        let file = unsafe { &mut *file };
        let done = last(file);
        // First: a process that is forked in between does not close a descriptor twice.
        self.users.fetch_or(TAKEN, Ordering::Relaxed);
        // SAFETY: nobody uses it afterwards: for the same reason, and as it is not dropped once
        // it is taken.
        drop(unsafe { ManuallyDrop::take(file) });
        Some(done)
    }

    /// Lets no more users in and waits for nobody. The file is closed when this is dropped.
    ///
    /// For a forked child: its copy counts users that are threads of the parent only, and its
    /// copies of the locks may be held by them. In a process with a thread that is closing the
    /// file, that thread might wait forever.
    pub(crate) fn abandon(&self) {
        self.users.fetch_or(CLOSED | ABANDONED, Ordering::Relaxed);
    }

    #[cold]
    #[inline(never)]
    fn wake_closing(&self) {
        // The closing thread has either seen this user leave, or waits and is woken.
        drop(lock(&self.draining));
        self.drained.notify_all();
    }
}

impl<F> Drop for RevocableFile<F> {
    fn drop(&mut self) {
        if *self.users.get_mut() & TAKEN == 0 {
            // SAFETY: it was not taken, and nobody uses it any more.
            unsafe { ManuallyDrop::drop(self.file.get_mut()) };
        }
    }
}

fn lock(mutex: &Mutex<()>) -> MutexGuard<'_, ()> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One that was counted.
struct User<'a, F>(&'a RevocableFile<F>);

impl<F> Drop for User<'_, F> {
    #[inline]
    fn drop(&mut self) {
        // Release: the closing thread sees what was done with the file.
        if self.0.users.fetch_sub(USER, Ordering::Release) == USER | CLOSED {
            self.0.wake_closing();
        }
    }
}

impl<F> fmt::Debug for RevocableFile<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let users = self.users.load(Ordering::Relaxed);
        f.debug_struct("RevocableFile")
            .field("is_closed", &(users & CLOSED != 0))
            .field("users", &(users / USER))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
