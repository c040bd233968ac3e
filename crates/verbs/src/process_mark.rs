//! Telling a process from the children that it forked.
//!
//! # Safety
//! One of the modules with `unsafe`: it maps a page and refers to its first word.
#![expect(unsafe_code, reason = "a page that the kernel clears in children")]

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

/// A page, of which only the first word counts.
const LENGTH: usize = size_of::<AtomicU32>();

/// A mark that the process which made it finds, and no child of it: the kernel clears
/// the page as it forks. Looking costs no system call.
#[derive(Debug)]
pub(crate) struct ProcessMark(NonNull<AtomicU32>);

// SAFETY: the word is reached as an atomic only, by any thread, and stays mapped until
// the value is dropped.
unsafe impl Send for ProcessMark {}
// SAFETY: as above.
unsafe impl Sync for ProcessMark {}

impl ProcessMark {
    pub(crate) fn new() -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping where the kernel chooses touches no other memory.
        let page = unsafe { libc::mmap(ptr::null_mut(), LENGTH, protection, flags, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mark = Self(NonNull::new(page.cast()).ok_or(io::ErrorKind::InvalidData)?);
        // SAFETY: the range is that of this mapping; the advice changes nothing for
        // this process.
        if unsafe { libc::madvise(page, LENGTH, libc::MADV_WIPEONFORK) } != 0 {
            return Err(io::Error::last_os_error());
        }
        mark.word().store(1, Ordering::Relaxed);
        Ok(mark)
    }

    /// Whether this is the process that made it.
    pub(crate) fn is_here(&self) -> bool {
        self.word().load(Ordering::Relaxed) == 1
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: aligned as pages are, and mapped for as long as `self` lives, in
        // children too.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for ProcessMark {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and owned. It cannot fail for a whole
        // mapping.
        let _ = unsafe { libc::munmap(self.0.as_ptr().cast(), LENGTH) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_does_not_find_it() {
        let mark = ProcessMark::new().unwrap();
        assert!(mark.is_here());
        // SAFETY: the child looks at its memory and ends, and runs nothing else.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: it ends at once.
            unsafe { libc::_exit(i32::from(mark.is_here())) };
        }
        let mut status = -1;
        // SAFETY: the place is this function's.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
        assert!(mark.is_here());
    }
}
