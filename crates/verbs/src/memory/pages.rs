//! Memory that devices of others reach.
//!
//! # Safety
//! One of the modules with `unsafe`: it maps memory and refers to its words.
#![expect(unsafe_code, reason = "memory that a device writes to")]

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use super::region::Memory;

/// Bytes of a word.
const WORD: usize = size_of::<AtomicU64>();

/// Pages of this process, which nothing else of it ever gets while a device holds
/// on to them. siw may go on with a segment or a read when the region has gone
/// (`siw_proc_write`, `siw_qp_sq_process`), and then does it to nobody's memory.
///
/// They are read and written as words alone, so that no two accesses of this
/// process's are of different sizes; for a device's an atomic is the nearest that
/// Rust knows.
#[derive(Debug)]
pub(super) struct Pages {
    start: NonNull<AtomicU64>,
    length: usize,
}

// SAFETY: the memory is reached through atomics only, by any thread, and stays
// mapped until the value is dropped.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Zeros; `None` for no bytes, too many, or where memory is short.
    pub(super) fn zeroed(length: usize) -> Option<Self> {
        if length == 0 || isize::try_from(length).is_err() {
            return None;
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping where the kernel chooses touches no other memory.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        let start = NonNull::new(start.cast())?;
        Some(Self { start, length })
    }

    /// Whether `length` bytes at `start` are within.
    fn holds(&self, start: usize, length: usize) -> bool {
        start
            .checked_add(length)
            .is_some_and(|end| end <= self.length)
    }

    /// Eight bytes; `None` if they are not within or not aligned.
    pub(super) fn word(&self, at: usize) -> Option<&AtomicU64> {
        (self.holds(at, WORD) && at % WORD == 0).then(|| self.of(at))
    }

    /// The word that this byte is of.
    fn of(&self, byte: usize) -> &AtomicU64 {
        assert!(byte < self.length, "byte {byte} of {}", self.length);
        // SAFETY: the byte is within the mapping, whose pages are whole words.
        let word = unsafe { self.start.add(byte / WORD) };
        // SAFETY: aligned as pages are, and mapped for as long as `self` lives.
        unsafe { word.as_ref() }
    }

    /// Copies bytes out that others may be writing: each word is some value it has
    /// had, not all from one moment.
    ///
    /// # Panics
    /// If they are not within.
    pub(super) fn load(&self, start: usize, into: &mut [u8]) {
        self.check(start, into.len());
        let (mut at, mut rest) = (start, into);
        while !rest.is_empty() {
            let bytes = self.of(at).load(Ordering::Relaxed).to_ne_bytes();
            let there = bytes.get(at % WORD..).unwrap_or_default();
            let count = there.len().min(rest.len());
            let (now, later) = rest.split_at_mut(count);
            for (to, from) in now.iter_mut().zip(there) {
                *to = *from;
            }
            (at, rest) = (at + count, later);
        }
    }

    /// Copies bytes in that others may be reading. What is beside them in a word
    /// stays as it is, also if a device is writing there.
    ///
    /// # Panics
    /// If they are not within.
    pub(super) fn store(&self, start: usize, from: &[u8]) {
        self.check(start, from.len());
        let (mut at, mut rest) = (start, from);
        while !rest.is_empty() {
            let count = (WORD - at % WORD).min(rest.len());
            let (now, later) = rest.split_at(count);
            match now.try_into() {
                Ok(word) => self
                    .of(at)
                    .store(u64::from_ne_bytes(word), Ordering::Relaxed),
                Err(_) => self.merge(at, now),
            }
            (at, rest) = (at + count, later);
        }
    }

    fn merge(&self, at: usize, part: &[u8]) {
        let merged = |word: u64| {
            let mut bytes = word.to_ne_bytes();
            for (to, from) in bytes.iter_mut().skip(at % WORD).zip(part) {
                *to = *from;
            }
            Some(u64::from_ne_bytes(bytes))
        };
        let word = self.of(at);
        // Always some: it is tried until nobody has come between.
        let _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, merged);
    }

    fn check(&self, start: usize, length: usize) {
        let within = self.holds(start, length);
        assert!(within, "{length} bytes at {start} of {}", self.length);
    }
}

impl Memory for Pages {
    fn address(&self) -> u64 {
        self.start.as_ptr().expose_provenance() as u64
    }

    fn len(&self) -> usize {
        self.length
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and owned. It cannot fail for a whole
        // mapping.
        let _ = unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_cross_words_and_edges() {
        let pages = Pages::zeroed(67).unwrap();
        let bytes: Vec<u8> = (1..=50).collect();
        for start in [0, 1, 3, 7, 8, 17] {
            pages.store(start, &[0xff; 50]);
            pages.store(start, &bytes);
            let mut back = [0; 50];
            pages.load(start, &mut back);
            assert_eq!(back, bytes[..]);
        }
        pages.store(64, &[1, 2, 3]);
        pages.store(65, &[7]);
        let mut end = [9; 3];
        pages.load(64, &mut end);
        assert_eq!(end, [1, 7, 3]);
        pages.load(67, &mut []);
    }

    #[test]
    fn words_are_aligned_and_within() {
        let pages = Pages::zeroed(20).unwrap();
        pages.word(8).unwrap().store(7, Ordering::Relaxed);
        let mut bytes = [0; 8];
        pages.load(8, &mut bytes);
        assert_eq!(u64::from_ne_bytes(bytes), 7);
        assert!(pages.word(4).is_none());
        assert!(pages.word(16).is_none());
    }

    #[test]
    fn no_bytes_are_refused() {
        assert!(Pages::zeroed(0).is_none());
        assert!(Pages::zeroed(usize::MAX).is_none());
    }

    #[test]
    #[should_panic(expected = "2 bytes at 3 of 4")]
    fn nothing_is_read_beyond_the_end() {
        Pages::zeroed(4).unwrap().load(3, &mut [0; 2]);
    }
}
