//! Memory that peers may access.
//!
//! # Safety
//! One of the modules with `unsafe`: it maps memory and creates references to its words.
#![expect(unsafe_code, reason = "memory that a device writes to")]

use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};

use super::region::Memory;

/// Bytes of a word.
const WORD: usize = size_of::<AtomicU64>();

/// How many words are copied at a time.
const GROUP: usize = 8;

/// Pages of this process, which are used for nothing else while a device references
/// them. siw may finish a segment or a read after the region was deregistered
/// (`siw_proc_write`, `siw_qp_sq_process`), and then accesses pages that are otherwise unused.
///
/// This process reads and writes only whole words, so that its accesses are all of one
/// size. Atomics are Rust's closest model of a device's accesses. Only [`bytes`](Self::bytes)
/// are read otherwise, to which nobody writes meanwhile.
#[derive(Debug)]
pub(super) struct Pages {
    start: NonNull<AtomicU64>,
    length: usize,
}

// SAFETY: all threads access the memory through atomics only, or read bytes that nobody writes
// to, and it stays mapped until the value is dropped.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Zeroed memory; `None` if `length` is 0 or too large, or memory is exhausted.
    pub(super) fn zeroed(length: usize) -> Option<Self> {
        if length == 0 || isize::try_from(length).is_err() {
            return None;
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address that the kernel chooses affects no other memory.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        let start = NonNull::new(start.cast())?;
        Some(Self { start, length })
    }

    /// Whether `length` bytes at `start` are within the memory.
    fn holds(&self, start: usize, length: usize) -> bool {
        start
            .checked_add(length)
            .is_some_and(|end| end <= self.length)
    }

    /// A word of 8 bytes; `None` if it is outside of the memory or not aligned.
    pub(super) fn word(&self, at: usize) -> Option<&AtomicU64> {
        (self.holds(at, WORD) && at % WORD == 0).then(|| self.word_of(at))
    }

    /// The word that contains this byte.
    fn word_of(&self, byte: usize) -> &AtomicU64 {
        assert!(byte < self.length, "byte {byte} of {}", self.length);
        // SAFETY: the byte is within the mapping, whose pages are whole words.
        let word = unsafe { self.start.add(byte / WORD) };
        // SAFETY: aligned as pages are, and mapped for as long as `self` lives.
        unsafe { word.as_ref() }
    }

    /// `count` words, from the word of this byte on.
    fn words(&self, byte: usize, count: usize) -> &[AtomicU64] {
        self.check(byte, count * WORD);
        // SAFETY: the byte is within the mapping, or at its end if there are no words.
        let first = unsafe { self.start.add(byte / WORD) };
        // SAFETY:
        // - The words are within the mapping, whose pages are whole words, and aligned.
        // - They are mapped for as long as `self` lives, and this process writes them as atomics
        //   only, and none that a slice of `bytes` touches.
        unsafe { slice::from_raw_parts(first.as_ptr(), count) }
    }

    /// Copies bytes out while devices may write: each aligned word has a value that it had at
    /// some time, and words may be from different times.
    ///
    /// # Panics
    /// If the range is outside of the memory.
    pub(super) fn load(&self, start: usize, into: &mut [u8]) {
        self.check(start, into.len());
        let (head, rest) = into.split_at_mut(into.len().min(to_boundary(start)));
        self.load_part(start, head);
        let start = start + head.len();
        let count = rest.len() / WORD;
        let (whole, tail) = rest.split_at_mut(count * WORD);
        let words = self.words(start, count);
        // Groups of words make the copy twice as fast.
        let (groups, others) = words.split_at(count - count % GROUP);
        let (grouped, ungrouped) = whole.split_at_mut(groups.len() * WORD);
        let groups = groups.chunks_exact(GROUP);
        for (group, chunk) in groups.zip(grouped.chunks_exact_mut(GROUP * WORD)) {
            load_words(group, chunk);
        }
        load_words(others, ungrouped);
        self.load_part(start + words.len() * WORD, tail);
    }

    /// Bytes where they lie; empty if the range is outside of the memory.
    ///
    /// # Safety
    /// As long as the slice lives, no device writes to them, and this process to none of the words that
    /// they touch.
    pub(super) unsafe fn bytes(&self, start: usize, length: usize) -> &[u8] {
        if !self.holds(start, length) {
            return &[];
        }
        // SAFETY: within the mapping, as checked.
        let first = unsafe { self.start.cast::<u8>().add(start) };
        // SAFETY: the range is mapped as long as `self` lives, initialised as all mapped memory
        // is, and nobody writes to it, as the caller has promised.
        unsafe { slice::from_raw_parts(first.as_ptr(), length) }
    }

    /// Copies a part of one word out.
    fn load_part(&self, at: usize, into: &mut [u8]) {
        if into.is_empty() {
            return;
        }
        let bytes = self.word_of(at).load(Ordering::Relaxed).to_ne_bytes();
        for (to, from) in into.iter_mut().zip(bytes.iter().skip(at % WORD)) {
            *to = *from;
        }
    }

    /// Copies bytes in while devices may read. Preserves the other bytes of a word, also if a
    /// device writes to them.
    ///
    /// # Panics
    /// If the range is outside of the memory.
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

    /// Copies a part of one word in.
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
        let word = self.word_of(at);
        // Never fails: it retries until no other write intervenes.
        let _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, merged);
    }

    fn check(&self, start: usize, length: usize) {
        let within = self.holds(start, length);
        assert!(within, "{length} bytes at {start} of {}", self.length);
    }
}

/// Copies whole words out.
#[inline]
fn load_words(words: &[AtomicU64], into: &mut [u8]) {
    for (word, chunk) in words.iter().zip(into.chunks_exact_mut(WORD)) {
        chunk.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
    }
}

/// How many bytes remain to the next word boundary; 0 at a boundary.
fn to_boundary(byte: usize) -> usize {
    byte.wrapping_neg() % WORD
}

// SAFETY: it owns the mapping, which does not move, and safe code accesses it by atomic words.
unsafe impl Memory for Pages {
    fn address(&self) -> u64 {
        self.start.as_ptr().expose_provenance() as u64
    }

    fn len(&self) -> usize {
        self.length
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and owned. If the kernel has to split a mapping for it
        // and cannot, the memory stays mapped.
        let _ = unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_cross_word_boundaries() {
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

    /// At every alignment and length.
    #[test]
    fn copies_equal_copies_of_slices() {
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
    fn bytes_are_those_of_the_range() {
        let pages = Pages::zeroed(20).unwrap();
        pages.store(3, &[1, 2, 3]);
        // SAFETY: nobody writes while the slices live.
        let at = |start, length| unsafe { pages.bytes(start, length) };
        assert_eq!(at(2, 5), [0, 1, 2, 3, 0]);
        assert_eq!((at(20, 0).len(), at(0, 20).len()), (0, 20));
        assert!(at(16, 5).is_empty() && at(usize::MAX, 2).is_empty());
    }

    #[test]
    fn words_outside_or_unaligned_are_none() {
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
    fn reads_beyond_the_end_panic() {
        Pages::zeroed(4).unwrap().load(3, &mut [0; 2]);
    }
}
