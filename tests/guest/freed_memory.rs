//! Detects writes to freed memory: freed blocks are filled with a pattern and not reused.
#![expect(unsafe_code, reason = "a part of the allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The pattern of freed memory. A device that writes there changes it, and a peer that
/// receives it recognises it.
pub(crate) const POISON: u8 = 0xdb;

/// The alignment that the library asks for its memory for devices, which is rare elsewhere.
const ALIGNMENT: usize = 16;

/// On siw the library asks for two pages less two bytes more, so that the bytes share no page.
const PAGES: usize = 2 * (4096 - 1);

/// The watched sizes; 0 is none.
static WATCHED: [AtomicUsize; 16] = [const { AtomicUsize::new(0) }; 16];

static FREED: Mutex<Vec<Block>> = Mutex::new(Vec::new());

struct Block {
    /// The exposed address of its first byte.
    start: usize,
    layout: Layout,
}

/// Watches blocks of one size that are aligned for devices. While this value lives,
/// such blocks are filled with a pattern when they are freed, and kept: they change
/// only if a device still uses them.
pub(crate) struct FreedBlocks {
    size: usize,
}

impl FreedBlocks {
    /// Watches blocks of about `bytes` bytes, a size that no other test has.
    pub(crate) fn of_about(bytes: usize) -> Self {
        Self::of_size(|number| bytes + number)
    }

    /// Watches blocks of the size that `size` computes from a unique number.
    pub(crate) fn of_size(size: impl FnOnce(usize) -> usize) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let size = size(NEXT.fetch_add(2, Ordering::Relaxed));
        let (none, relaxed) = (0, Ordering::Relaxed);
        let watch = |one: &AtomicUsize| one.compare_exchange(none, size, relaxed, relaxed).is_ok();
        assert!(WATCHED.iter().any(watch), "too many at once");
        Self { size }
    }

    /// The size of a watched block in bytes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The number of freed blocks.
    ///
    /// # Panics
    /// If one was written to after it was freed.
    pub(crate) fn count(&self) -> usize {
        assert!(self.are_untouched(), "written to after it was freed");
        let freed_blocks = freed_blocks();
        freed_blocks.iter().filter(|one| self.is_ours(one)).count()
    }

    /// Whether no freed block was written to.
    pub(crate) fn are_untouched(&self) -> bool {
        let freed_blocks = freed_blocks();
        let mut ours = freed_blocks.iter().filter(|one| self.is_ours(one));
        ours.all(is_untouched)
    }

    fn is_ours(&self, block: &Block) -> bool {
        is_of_size(block.layout, self.size)
    }
}

impl Drop for FreedBlocks {
    fn drop(&mut self) {
        for one in &WATCHED {
            let (none, relaxed) = (0, Ordering::Relaxed);
            let _ = one.compare_exchange(self.size, none, relaxed, relaxed);
        }
        freed_blocks().retain(|block| {
            if !self.is_ours(block) {
                return true;
            }
            let start = std::ptr::with_exposed_provenance_mut(block.start);
            // SAFETY: the system's allocator allocated it with this layout, its owner
            // has freed it, and it leaves the list here.
            unsafe { System.dealloc(start, block.layout) };
            false
        });
    }
}

/// Keeps a freed block if its size is watched. Returns `false` if it must be freed.
pub(crate) fn keep_if_watched(pointer: *mut u8, layout: Layout) -> bool {
    let is_watched = |one: &AtomicUsize| match one.load(Ordering::Relaxed) {
        0 => false,
        size => is_of_size(layout, size),
    };
    if !WATCHED.iter().any(is_watched) {
        return false;
    }
    // SAFETY: the owner frees the block, so nothing else uses it.
    unsafe { pointer.write_bytes(POISON, layout.size()) };
    let start = pointer.expose_provenance();
    // The list itself has another alignment, so this does not recurse.
    freed_blocks().push(Block { start, layout });
    true
}

/// Whether the block may be memory of this size for a device.
fn is_of_size(layout: Layout, size: usize) -> bool {
    let sizes = [size, size + PAGES];
    layout.align() == ALIGNMENT && sizes.contains(&layout.size())
}

fn is_untouched(block: &Block) -> bool {
    let start = std::ptr::with_exposed_provenance(block.start);
    // SAFETY: the block is kept and initialised. Only a device with a stale request
    // writes to it, which is what this detects.
    let bytes: &[u8] = unsafe { slice::from_raw_parts(start, block.layout.size()) };
    bytes.iter().all(|byte| *byte == POISON)
}

fn freed_blocks() -> MutexGuard<'static, Vec<Block>> {
    FREED.lock().unwrap_or_else(PoisonError::into_inner)
}
