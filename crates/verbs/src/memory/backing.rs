//! The memory behind a region.
//!
//! # Safety
//! One of the modules with `unsafe`: the device writes to this memory without
//! Rust's knowledge, so no reference to it may exist but for as long as nobody
//! else uses it. It is held by a raw pointer, and each way in says who vouches.
#![expect(unsafe_code, reason = "memory that a device writes to")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// What memory for atomics and for whole cache lines is aligned to.
const ALIGNMENT: usize = 64;

/// Bytes of the heap, at least one.
#[derive(Debug)]
pub(crate) struct Backing {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns plain bytes; shared access is by atomics or vouched for by the
// caller.
unsafe impl Send for Backing {}
// SAFETY: as above.
unsafe impl Sync for Backing {}

impl Backing {
    /// Zeros; `None` for no bytes, too many, or where memory is short.
    pub(super) fn zeroed(length: usize) -> Option<Self> {
        let layout = Layout::from_size_align(length, ALIGNMENT).ok()?;
        if length == 0 {
            return None;
        }
        // SAFETY: the layout's size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { start, layout })
    }

    /// These bytes; they come back if there are none.
    pub(super) fn of(bytes: Box<[u8]>) -> Result<Self, Box<[u8]>> {
        if bytes.is_empty() {
            return Err(bytes);
        }
        let layout = Layout::for_value(&*bytes);
        let start = NonNull::from(Box::leak(bytes)).cast();
        Ok(Self { start, layout })
    }

    pub(super) fn address(&self) -> u64 {
        self.start.as_ptr().expose_provenance() as u64
    }

    pub(super) fn len(&self) -> usize {
        self.layout.size()
    }

    /// Whether `length` bytes at `start` are within.
    pub(super) fn holds(&self, start: usize, length: usize) -> bool {
        start
            .checked_add(length)
            .is_some_and(|end| end <= self.len())
    }

    /// # Panics
    /// If they are not within.
    fn place(&self, start: usize, length: usize) -> NonNull<u8> {
        assert!(
            self.holds(start, length),
            "{length} bytes at {start} of {}",
            self.len()
        );
        // SAFETY: the offset is within the allocation.
        unsafe { self.start.add(start) }
    }

    /// Bytes to read.
    ///
    /// # Safety
    /// As long as the slice lives, nobody writes to these bytes: no thread, and no
    /// device.
    ///
    /// # Panics
    /// If they are not within.
    pub(super) unsafe fn bytes(&self, start: usize, length: usize) -> &[u8] {
        let place = self.place(start, length);
        // SAFETY: within the allocation, initialised when it was made; the caller
        // vouches that they do not change.
        unsafe { slice::from_raw_parts(place.as_ptr(), length) }
    }

    /// Bytes to write.
    ///
    /// # Safety
    /// As long as the slice lives, nobody else reads or writes these bytes: no
    /// thread, no device, no other slice.
    ///
    /// # Panics
    /// If they are not within.
    #[expect(
        clippy::mut_from_ref,
        reason = "the caller vouches for being the only one"
    )]
    pub(super) unsafe fn bytes_mut(&self, start: usize, length: usize) -> &mut [u8] {
        let place = self.place(start, length);
        // SAFETY: within the allocation, initialised when it was made; the caller
        // vouches for being the only one.
        unsafe { slice::from_raw_parts_mut(place.as_ptr(), length) }
    }

    /// A byte that others may write at any time.
    fn byte(&self, at: usize) -> &AtomicU8 {
        let place = self.place(at, 1).cast();
        // SAFETY: within the allocation, which lives as long as `self`; whoever
        // asks this way shares these bytes with the device only, for whose writes
        // an atomic is the nearest that Rust knows.
        unsafe { place.as_ref() }
    }

    /// Eight bytes that others may write at any time; `None` if they are not
    /// aligned.
    pub(super) fn word(&self, at: usize) -> Option<&AtomicU64> {
        let place: NonNull<AtomicU64> = self.place(at, 8).cast();
        if !place.is_aligned() {
            return None;
        }
        // SAFETY: as in `byte`, and it is aligned.
        Some(unsafe { place.as_ref() })
    }

    /// Copies bytes out that others may be writing: each word is some value it has
    /// had, not all from one moment.
    ///
    /// # Panics
    /// If they are not within.
    pub(super) fn load(&self, start: usize, into: &mut [u8]) {
        let head = self.head(start, into.len());
        let (first, rest) = into.split_at_mut(head);
        let behind = start + head + rest.len() / 8 * 8;
        let mut words = rest.chunks_exact_mut(8);
        self.load_bytes(start, first);
        for (at, word) in (start + head..).step_by(8).zip(&mut words) {
            if let Some(shared) = self.word(at) {
                word.copy_from_slice(&shared.load(Ordering::Relaxed).to_ne_bytes());
            }
        }
        self.load_bytes(behind, words.into_remainder());
    }

    /// Copies bytes in that others may be reading.
    ///
    /// # Panics
    /// If they are not within.
    pub(super) fn store(&self, start: usize, from: &[u8]) {
        let head = self.head(start, from.len());
        let (first, rest) = from.split_at(head);
        let behind = start + head + rest.len() / 8 * 8;
        let words = rest.chunks_exact(8);
        self.store_bytes(start, first);
        self.store_bytes(behind, words.remainder());
        for (at, word) in (start + head..).step_by(8).zip(words) {
            if let (Some(shared), Ok(word)) = (self.word(at), word.try_into()) {
                shared.store(u64::from_ne_bytes(word), Ordering::Relaxed);
            }
        }
    }

    /// How many of these bytes come before the first whole word.
    fn head(&self, start: usize, length: usize) -> usize {
        let place = self.place(start, length).as_ptr().addr();
        length.min(place.next_multiple_of(8) - place)
    }

    fn load_bytes(&self, start: usize, into: &mut [u8]) {
        for (at, byte) in (start..).zip(into) {
            *byte = self.byte(at).load(Ordering::Relaxed);
        }
    }

    fn store_bytes(&self, start: usize, from: &[u8]) {
        for (at, byte) in (start..).zip(from) {
            self.byte(at).store(*byte, Ordering::Relaxed);
        }
    }

    /// The bytes as a box again, if they came as one or are laid out like it.
    pub(super) fn into_boxed(self) -> Box<[u8]> {
        if self.layout.align() != 1 {
            // SAFETY: `self` is owned: nobody else is there.
            return unsafe { self.bytes(0, self.len()) }.into();
        }
        let bytes = ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.len());
        std::mem::forget(self);
        // SAFETY: the pointer came out of a box of this length in `of`, the only
        // one to make this layout, and is forgotten here.
        unsafe { Box::from_raw(bytes) }
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, by `zeroed` or by a box of so many
        // bytes, and owned.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_cross_words_and_edges() {
        let backing = Backing::zeroed(64).unwrap();
        let bytes: Vec<u8> = (1..=50).collect();
        for start in [0, 1, 3, 7, 8, 14] {
            backing.store(start, &bytes);
            let mut back = [0; 50];
            backing.load(start, &mut back);
            assert_eq!(back, bytes[..]);
        }
        let mut end = [9; 3];
        backing.store(61, &[1, 2, 3]);
        backing.load(61, &mut end);
        assert_eq!(end, [1, 2, 3]);
    }

    #[test]
    fn a_box_comes_back_as_it_was() {
        let bytes: Box<[u8]> = vec![7, 8, 9].into();
        let place = bytes.as_ptr();
        let backing = Backing::of(bytes).unwrap();
        backing.store(1, &[5]);
        let bytes = backing.into_boxed();
        assert_eq!((bytes.as_ptr(), &*bytes), (place, &[7, 5, 9][..]));
        let copied = Backing::zeroed(3).unwrap().into_boxed();
        assert_eq!(*copied, [0; 3]);
    }

    #[test]
    fn no_bytes_are_refused() {
        assert!(Backing::zeroed(0).is_none());
        assert!(Backing::zeroed(usize::MAX).is_none());
        assert!(Backing::of(Box::default()).is_err());
    }

    #[test]
    #[should_panic(expected = "2 bytes at 3 of 4")]
    fn nothing_is_read_beyond_the_end() {
        let backing = Backing::zeroed(4).unwrap();
        backing.load(3, &mut [0; 2][..]);
    }
}
