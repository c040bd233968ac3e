//! Detects writes to freed memory: freed blocks are filled with a pattern and not reused.
#![expect(unsafe_code, reason = "a part of the allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What freed memory is filled with: a device that writes there leaves something
/// else, and a peer that it is sent to sees it.
pub(crate) const POISON: u8 = 0xdb;

/// How the library aligns memory for devices; little else is aligned so.
const ALIGNMENT: usize = 64;

/// Sizes that are watched; 0 is none.
static WATCHED: [AtomicUsize; 16] = [const { AtomicUsize::new(0) }; 16];

static FREED: Mutex<Vec<Block>> = Mutex::new(Vec::new());

struct Block {
    /// Where it begins, as an exposed address.
    start: usize,
    layout: Layout,
}

/// Blocks of one size for devices. While this lives they are not freed when their
/// owners free them, but poisoned and kept: they become nobody's, and stay as they
/// are unless a device still has them.
pub(crate) struct FreedBlocks {
    size: usize,
}

impl FreedBlocks {
    /// Of blocks of about so many bytes: a size that is no other test's.
    pub(crate) fn of_about(bytes: usize) -> Self {
        Self::of_size(|number| bytes + number)
    }

    /// Of blocks whose size a number makes that is no other test's.
    pub(crate) fn of_size(size: impl FnOnce(usize) -> usize) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let size = size(NEXT.fetch_add(2, Ordering::Relaxed));
        let (none, relaxed) = (0, Ordering::Relaxed);
        let watch = |one: &AtomicUsize| one.compare_exchange(none, size, relaxed, relaxed).is_ok();
        assert!(WATCHED.iter().any(watch), "too many at once");
        Self { size }
    }

    /// Bytes that a block is to have.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// How many have been freed.
    ///
    /// # Panics
    /// If somebody has written to one since.
    pub(crate) fn count(&self) -> usize {
        assert!(self.are_untouched(), "written to after it was freed");
        let freed_blocks = freed_blocks();
        freed_blocks.iter().filter(|one| self.is_ours(one)).count()
    }

    /// Whether nobody has written to one since.
    pub(crate) fn are_untouched(&self) -> bool {
        let freed_blocks = freed_blocks();
        let mut ours = freed_blocks.iter().filter(|one| self.is_ours(one));
        ours.all(is_untouched)
    }

    fn is_ours(&self, block: &Block) -> bool {
        block.layout.size() == self.size
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
            // SAFETY: allocated by the system's allocator with this layout, freed by
            // its owner, and kept from it until now, when it leaves the list.
            unsafe { System.dealloc(start, block.layout) };
            false
        });
    }
}

/// Keeps a block that its owner frees, if its size is watched. Otherwise it is to be
/// freed.
pub(crate) fn keep_if_watched(pointer: *mut u8, layout: Layout) -> bool {
    let is_size = |one: &AtomicUsize| one.load(Ordering::Relaxed) == layout.size();
    if layout.align() != ALIGNMENT || !WATCHED.iter().any(is_size) {
        return false;
    }
    // SAFETY: the owner frees it, so the whole block is nobody's.
    unsafe { pointer.write_bytes(POISON, layout.size()) };
    let start = pointer.expose_provenance();
    // The list itself is aligned otherwise.
    freed_blocks().push(Block { start, layout });
    true
}

fn is_untouched(block: &Block) -> bool {
    let start = std::ptr::with_exposed_provenance(block.start);
    // SAFETY: the block is kept and initialised; only a device that should not
    // have it writes there, which is what is looked for.
    let bytes: &[u8] = unsafe { slice::from_raw_parts(start, block.layout.size()) };
    bytes.iter().all(|byte| *byte == POISON)
}

fn freed_blocks() -> MutexGuard<'static, Vec<Block>> {
    FREED.lock().unwrap_or_else(PoisonError::into_inner)
}
