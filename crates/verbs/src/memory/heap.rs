//! Bytes of the allocator's.
//!
//! # Safety
//! One of the modules with `unsafe`: the device writes to this memory without
//! Rust's knowledge, so no reference to it may exist but for as long as nobody
//! else uses it. It is held by a raw pointer, and each way in says who vouches.
#![expect(unsafe_code, reason = "memory that a device writes to")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::{self, NonNull};
use std::slice;

use super::region::Memory;

/// What memory for whole cache lines is aligned to.
const ALIGNMENT: usize = 64;

/// Bytes of the heap, at least one.
#[derive(Debug)]
pub(super) struct Heap {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns plain bytes, and who reads or writes them vouches for that.
unsafe impl Send for Heap {}
// SAFETY: as above.
unsafe impl Sync for Heap {}

impl Heap {
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

    /// # Panics
    /// If they are not within.
    fn place(&self, start: usize, length: usize) -> NonNull<u8> {
        let within = start
            .checked_add(length)
            .is_some_and(|end| end <= self.len());
        assert!(within, "{length} bytes at {start} of {}", self.len());
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

    /// The bytes as a box again, if they came as one.
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

impl Memory for Heap {
    fn address(&self) -> u64 {
        self.start.as_ptr().expose_provenance() as u64
    }

    fn len(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Heap {
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
    fn a_box_comes_back_as_it_was() {
        let bytes: Box<[u8]> = vec![7, 8, 9].into();
        let place = bytes.as_ptr();
        let bytes = Heap::of(bytes).unwrap().into_boxed();
        assert_eq!((bytes.as_ptr(), &*bytes), (place, &[7, 8, 9][..]));
        let copied = Heap::zeroed(3).unwrap().into_boxed();
        assert_eq!(*copied, [0; 3]);
    }

    #[test]
    fn no_bytes_are_refused() {
        assert!(Heap::zeroed(0).is_none());
        assert!(Heap::zeroed(usize::MAX).is_none());
        assert!(Heap::of(Box::default()).is_err());
    }

    #[test]
    #[should_panic(expected = "2 bytes at 3 of 4")]
    fn nothing_is_beyond_the_end() {
        Heap::zeroed(4).unwrap().place(3, 2);
    }
}
