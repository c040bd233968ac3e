//! Counts allocations.
//!
//! # Safety
//! One of the modules with `unsafe`: an allocator that counts is an allocator.
#![expect(unsafe_code, reason = "an allocator that counts is an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// Set in the environment of a process whose instructions are counted, rather than its
/// allocations.
const UNCOUNTED: &str = "RDMACM_UNCOUNTED";

static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicU64 = AtomicU64::new(0);
static LIVE_BYTES: AtomicI64 = AtomicI64::new(0);

/// Counts from now on, unless the environment says otherwise.
pub(crate) fn count() {
    let is_counting = std::env::var_os(UNCOUNTED).is_none();
    IS_COUNTING.store(is_counting, Ordering::Relaxed);
}

/// How often the process has allocated.
pub(crate) fn calls() -> u64 {
    CALLS.load(Ordering::Relaxed)
}

/// The bytes that the process has allocated and not freed.
pub(crate) fn live_bytes() -> i64 {
    LIVE_BYTES.load(Ordering::Relaxed)
}

/// The system's allocator, counted.
struct Counting;

/// Counts memory that was allocated, unless that has failed.
fn counted(pointer: *mut u8) -> *mut u8 {
    if IS_COUNTING.load(Ordering::Relaxed) {
        CALLS.fetch_add(1, Ordering::Relaxed);
        LIVE_BYTES.fetch_add(usable(pointer), Ordering::Relaxed);
    }
    pointer
}

/// Memory that is about to be freed.
fn uncount(pointer: *mut u8) {
    if IS_COUNTING.load(Ordering::Relaxed) {
        LIVE_BYTES.fetch_sub(usable(pointer), Ordering::Relaxed);
    }
}

/// The bytes of an allocation as the C programs count them, which know no others when they free
/// one; 0 for none.
fn usable(pointer: *mut u8) -> i64 {
    // SAFETY: null, or what `System` has allocated by the C library's allocator, and has not freed
    // yet.
    let size = unsafe { libc::malloc_usable_size(pointer.cast()) };
    // No allocation is longer than `isize::MAX`.
    i64::try_from(size).unwrap_or(i64::MAX)
}

// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller fulfils this function's contract, which is the same.
        counted(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        counted(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        uncount(pointer);
        // SAFETY: as above.
        counted(unsafe { System.realloc(pointer, layout, size) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        uncount(pointer);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
