//! Distinguishing a process from its forked children.
//!
//! # Safety
//! One of the modules with `unsafe`: it maps a page and creates references to its first word.
#![expect(unsafe_code, reason = "a page that the kernel clears in children")]

use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The first word of a page; the mapping is rounded up.
const LENGTH: usize = size_of::<AtomicU32>();

/// A word that is set in the process that created it and clear in its forked children: the
/// kernel clears its page on fork. Checking it needs no system call. Clones share the word.
#[derive(Clone, Debug)]
pub(crate) struct ForkDetector {
    /// The word of the page.
    word: NonNull<AtomicU32>,
    /// Keeps it mapped.
    _page: Arc<Page>,
}

// SAFETY: all threads access the word as an atomic only, and it stays mapped until the last
// clone is dropped.
unsafe impl Send for ForkDetector {}
// SAFETY: as above.
unsafe impl Sync for ForkDetector {}

/// A mapped page; unmapped when dropped.
#[derive(Debug)]
struct Page(NonNull<AtomicU32>);

// SAFETY: it is only unmapped, by whichever thread drops it.
unsafe impl Send for Page {}
// SAFETY: nothing can be done with a reference to it.
unsafe impl Sync for Page {}

impl ForkDetector {
    pub(crate) fn new() -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address that the kernel chooses affects no other memory.
        let page = unsafe { libc::mmap(ptr::null_mut(), LENGTH, protection, flags, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let word = NonNull::new(page.cast()).ok_or(io::ErrorKind::InvalidData)?;
        let fork_detector = Self {
            word,
            _page: Arc::new(Page(word)),
        };
        // SAFETY: the range is that of this mapping; the advice changes nothing for
        // this process.
        if unsafe { libc::madvise(page, LENGTH, libc::MADV_WIPEONFORK) } != 0 {
            return Err(io::Error::last_os_error());
        }
        fork_detector.word().store(1, Ordering::Relaxed);
        Ok(fork_detector)
    }

    /// Whether this is the process that created it.
    #[inline]
    pub(crate) fn is_same_process(&self) -> bool {
        self.word().load(Ordering::Relaxed) == 1
    }

    #[inline]
    fn word(&self) -> &AtomicU32 {
        // SAFETY: aligned as pages are, and mapped for as long as `self` lives, in
        // children too.
        unsafe { self.word.as_ref() }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and owned. If the kernel has to split a mapping for
        // it and cannot, the memory stays mapped.
        let _ = unsafe { libc::munmap(self.0.as_ptr().cast(), LENGTH) };
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    /// How long a child may take, on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(10);

    /// Forks. The child does `work` and exits. Whether it has done so, without a panic; it is
    /// killed if it has not ended after a while.
    pub(crate) fn child_ends(work: impl FnOnce()) -> bool {
        // SAFETY: the child waits for no thread of this process longer than it is let live.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "{}", io::Error::last_os_error());
        if child == 0 {
            let done = catch_unwind(AssertUnwindSafe(work));
            // SAFETY: the child exits at once.
            unsafe { libc::_exit(i32::from(done.is_err())) };
        }
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = status_of(child, libc::WNOHANG) {
                return status == 0;
            }
            thread::sleep(Duration::from_millis(1));
        }
        // SAFETY: it signals the child, which is not waited for yet.
        assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0);
        assert!(status_of(child, 0).is_some());
        false
    }

    /// As [`child_ends`], while another thread has locked what `lock` locks.
    pub(crate) fn child_ends_while_locked<G>(
        lock: impl FnOnce() -> G + Send,
        work: impl FnOnce(),
    ) -> bool {
        let (locked, is_locked) = mpsc::channel::<()>();
        let (unlock, is_done) = mpsc::channel::<()>();
        // Here it is dropped after it is unlocked, with what it owns.
        let mut work = Some(work);
        thread::scope(|scope| {
            scope.spawn(move || {
                let _guard = lock();
                locked.send(()).unwrap();
                let _ = is_done.recv();
            });
            is_locked.recv().unwrap();
            let has_ended = child_ends(|| work.take().into_iter().for_each(|work| work()));
            drop(unlock);
            has_ended
        })
    }

    /// How a child has ended, if it has.
    fn status_of(child: libc::pid_t, options: libc::c_int) -> Option<libc::c_int> {
        let mut status = -1;
        // SAFETY: the pointer is to a local variable.
        let ended = unsafe { libc::waitpid(child, &raw mut status, options) };
        (ended == child).then_some(status)
    }

    #[test]
    fn the_word_is_clear_in_a_child() {
        let fork_detector = ForkDetector::new().unwrap();
        assert!(fork_detector.is_same_process());
        assert!(child_ends(|| assert!(!fork_detector.is_same_process())));
        assert!(fork_detector.is_same_process());
    }
}
