//! Memory that devices of others reach.
//!
//! # Safety
//! One of the modules with `unsafe`: it maps memory and refers to its words.
#![expect(unsafe_code, reason = "memory that a device writes to")]

use std::ptr::{self, NonNull};
use std::slice;
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

    /// The whole words from the word of this byte on.
    fn words(&self, byte: usize, count: usize) -> &[AtomicU64] {
        self.check(byte, count * WORD);
        // SAFETY: the byte is within the mapping, or at its end if there are no words.
        let first = unsafe { self.start.add(byte / WORD) };
        // SAFETY:
        // - The words are within the mapping, whose pages are whole words, and aligned.
        // - They are mapped for as long as `self` lives, and this process accesses them
        //   as atomics only.
        unsafe { slice::from_raw_parts(first.as_ptr(), count) }
    }

    /// Copies bytes out that others may be writing: each aligned word is a value that it has
    /// had, and the words need not be from one moment.
    ///
    /// # Panics
    /// If they are not within.
    pub(super) fn load(&self, start: usize, into: &mut [u8]) {
        self.check(start, into.len());
        let (head, rest) = into.split_at_mut(into.len().min(to_boundary(start)));
        self.load_part(start, head);
        let start = start + head.len();
        let mut chunks = rest.chunks_exact_mut(WORD);
        let words = self.words(start, chunks.len());
        for (word, chunk) in words.iter().zip(&mut chunks) {
            chunk.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        self.load_part(start + words.len() * WORD, chunks.into_remainder());
    }

    /// Copies bytes of one word out.
    fn load_part(&self, at: usize, into: &mut [u8]) {
        if into.is_empty() {
            return;
        }
        let bytes = self.of(at).load(Ordering::Relaxed).to_ne_bytes();
        for (to, from) in into.iter_mut().zip(bytes.iter().skip(at % WORD)) {
            *to = *from;
        }
    }

    /// Copies bytes in that others may be reading. What is beside them in a word
    /// stays as it is, also if a device is writing there.
    ///
    /// # Panics
    /// If they are not within.
    pub(super) fn store(&self, start: usize, from: &[u8]) {
        self.check(start, from.len());
        let (head, rest) = from.split_at(from.len().min(to_boundary(start)));
        self.merge(start, head);
        let start = start + head.len();
        let chunks = rest.chunks_exact(WORD);
        let (words, tail) = (self.words(start, chunks.len()), chunks.remainder());
        for (word, chunk) in words.iter().zip(chunks) {
            let mut bytes = [0; WORD];
            bytes.copy_from_slice(chunk);
            word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
        self.merge(start + words.len() * WORD, tail);
    }

    /// Copies bytes of one word in.
    fn merge(&self, at: usize, part: &[u8]) {
        if part.is_empty() {
            return;
        }
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

/// How many bytes there are to the next word; 0 at the beginning of one.
fn to_boundary(byte: usize) -> usize {
    byte.wrapping_neg() % WORD
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

    /// Against a slice, at every alignment and length.
    #[test]
    fn copies_are_those_of_slices() {
        let pages = Pages::zeroed(80).unwrap();
        let mut expected = [0; 80];
        let mut next = 0_u8;
        for start in 0..24 {
            for length in 0..40 {
                let bytes: Vec<u8> = (0..length).map(|at| next.wrapping_add(at)).collect();
                next = next.wrapping_add(41);
                let range = start..start + bytes.len();
                pages.store(start, &bytes);
                expected[range.clone()].copy_from_slice(&bytes);
                let mut all = [0; 80];
                pages.load(0, &mut all);
                assert_eq!(all, expected, "{length} bytes at {start}");
                let mut part = vec![0; bytes.len()];
                pages.load(start, &mut part);
                assert_eq!(part, expected[range], "{length} bytes at {start}");
            }
        }
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
