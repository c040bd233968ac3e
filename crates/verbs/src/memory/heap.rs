//! Memory from the allocator.
//!
//! # Safety
//! One of the modules with `unsafe`: a device writes to this memory, so a reference to it
//! may exist only while nothing else uses it. The memory is held by a raw pointer, and each
//! accessor states what its caller guarantees.
#![expect(unsafe_code, reason = "memory that a device writes to")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::{self, NonNull};
use std::slice;

use super::region::Memory;

/// The alignment of all blocks. For a larger one, the standard library zeroes the memory itself,
/// also fresh pages that are zero, and the GNU C library looks for more room than a freed block of
/// the same length leaves, and grows the heap instead: connecting takes half as long again.
const ALIGNMENT: usize = 16;

/// The largest page of Linux on any processor.
const LARGEST_PAGE: usize = 1 << 16;

/// At least one byte of the heap.
#[derive(Debug)]
pub(super) struct Heap {
    start: NonNull<u8>,
    length: usize,
    /// The allocated block, which the bytes are in.
    block: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns plain bytes, and the caller of each accessor guarantees exclusive or shared
// access.
unsafe impl Send for Heap {}
// SAFETY: as above.
unsafe impl Sync for Heap {}

impl Heap {
    /// Zeroed memory; `None` if `length` is 0 or too large, or memory is exhausted.
    pub(super) fn zeroed(length: usize) -> Option<Self> {
        let layout = Layout::from_size_align(length, ALIGNMENT).ok()?;
        Self::of_layout(length, layout)
    }

    /// As [`zeroed`](Self::zeroed), with nothing else of the process in its pages.
    pub(super) fn zeroed_pages(length: usize) -> Option<Self> {
        let page = page_size();
        // A page before, less a byte, for the alignment, and one behind for the rest of the last
        // page. Rounding the length up would do too, but tests recognise memory by its size.
        let size = length.checked_add(2 * (page - 1))?;
        let layout = Layout::from_size_align(size, ALIGNMENT).ok()?;
        let mut heap = Self::of_layout(length, layout)?;
        // Less than a page, whose size is a power of two.
        let offset = heap.block.addr().get().wrapping_neg() & (page - 1);
        // SAFETY: the block has room for one page less a byte before the bytes.
        heap.start = unsafe { heap.block.add(offset) };
        Some(heap)
    }

    fn of_layout(length: usize, layout: Layout) -> Option<Self> {
        if length == 0 {
            return None;
        }
        // SAFETY: the layout's size is at least the length, which is not zero.
        let block = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self {
            start: block,
            length,
            block,
            layout,
        })
    }

    /// The memory of a box; returns it if it is empty.
    pub(super) fn from_box(bytes: Box<[u8]>) -> Result<Self, Box<[u8]>> {
        if bytes.is_empty() {
            return Err(bytes);
        }
        let layout = Layout::for_value(&*bytes);
        let block = NonNull::from(Box::leak(bytes)).cast();
        Ok(Self {
            start: block,
            length: layout.size(),
            block,
            layout,
        })
    }

    /// # Panics
    /// If the range is outside of the memory.
    fn pointer(&self, start: usize, length: usize) -> NonNull<u8> {
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
    /// While the slice lives, no thread and no device writes to these bytes.
    ///
    /// # Panics
    /// If the range is outside of the memory.
    pub(super) unsafe fn bytes(&self, start: usize, length: usize) -> &[u8] {
        let pointer = self.pointer(start, length);
        // SAFETY: within the allocation, which is initialised; the caller guarantees that the
        // bytes do not change.
        unsafe { slice::from_raw_parts(pointer.as_ptr(), length) }
    }

    /// Bytes to write.
    ///
    /// # Safety
    /// While the slice lives, no other thread, device or slice reads or writes these bytes.
    ///
    /// # Panics
    /// If the range is outside of the memory.
    #[expect(
        clippy::mut_from_ref,
        reason = "the caller guarantees exclusive access"
    )]
    pub(super) unsafe fn bytes_mut(&self, start: usize, length: usize) -> &mut [u8] {
        let pointer = self.pointer(start, length);
        // SAFETY: within the allocation, which is initialised; the caller guarantees exclusive
        // access.
        unsafe { slice::from_raw_parts_mut(pointer.as_ptr(), length) }
    }

    /// Whether they came from a box, which may share its pages with other memory of the process.
    pub(super) fn is_from_box(&self) -> bool {
        self.layout.align() == 1
    }

    /// The bytes as a box; without a copy if they came from one.
    pub(super) fn into_boxed(self) -> Box<[u8]> {
        if !self.is_from_box() {
            // SAFETY: `self` is owned, so nothing else accesses the memory.
            return unsafe { self.bytes(0, self.len()) }.into();
        }
        let bytes = ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.len());
        std::mem::forget(self);
        // SAFETY: the pointer is from a box of this length: only `from_box` creates this
        // layout. `self` is forgotten, so the memory is freed once.
        unsafe { Box::from_raw(bytes) }
    }
}

// SAFETY: it owns the block, which does not move, and each accessor says what its caller guarantees.
unsafe impl Memory for Heap {
    fn address(&self) -> u64 {
        self.start.as_ptr().expose_provenance() as u64
    }

    fn len(&self) -> usize {
        self.length
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout by `of_layout` or as a box, and owned.
        unsafe { dealloc(self.block.as_ptr(), self.layout) };
    }
}

fn page_size() -> usize {
    // SAFETY: it only returns a number.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let size = usize::try_from(size).ok();
    size.filter(|size| size.is_power_of_two())
        .unwrap_or(LARGEST_PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_is_returned_without_a_copy() {
        let bytes: Box<[u8]> = vec![7, 8, 9].into();
        let pointer = bytes.as_ptr();
        let bytes = Heap::from_box(bytes).unwrap().into_boxed();
        assert_eq!((bytes.as_ptr(), &*bytes), (pointer, &[7, 8, 9][..]));
        let copied = Heap::zeroed(3).unwrap().into_boxed();
        assert_eq!(*copied, [0; 3]);
    }

    #[test]
    fn pages_of_its_own_are_part_of_its_allocation() {
        let page = page_size();
        for length in [1, page - 1, page, page + 1, 3 * page + 7] {
            let heap = Heap::zeroed_pages(length).unwrap();
            assert_eq!((heap.len(), heap.start.addr().get() % page), (length, 0));
            let before = heap.start.addr().get() - heap.block.addr().get();
            let pages = length.div_ceil(page) * page;
            assert!(heap.layout.size() >= before + pages, "{length} bytes");
            // SAFETY: nothing else uses it.
            let bytes = unsafe { heap.bytes(0, length) };
            assert!(bytes.iter().all(|byte| *byte == 0));
            assert_eq!(heap.into_boxed().len(), length);
        }
    }

    #[test]
    fn no_bytes_are_refused() {
        for zeroed in [Heap::zeroed, Heap::zeroed_pages] {
            assert!(zeroed(0).is_none() && zeroed(usize::MAX).is_none());
        }
        assert!(Heap::from_box(Box::default()).is_err());
    }

    #[test]
    #[should_panic(expected = "2 bytes at 3 of 4")]
    fn ranges_beyond_the_end_panic() {
        Heap::zeroed(4).unwrap().pointer(3, 2);
    }
}
