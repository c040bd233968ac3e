//! Memory for this program's own part, so that only the C library runs out of it.
#![expect(unsafe_code, reason = "an allocator hands out raw memory")]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::hint;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

const BYTES: usize = 64 << 20;

/// Memory that is there from the start, and given out once.
struct Arena {
    bytes: UnsafeCell<[u8; BYTES]>,
    used: AtomicUsize,
}

// SAFETY: no two allocations have a byte in common.
unsafe impl Sync for Arena {}

#[global_allocator]
static ARENA: Arena = Arena {
    bytes: UnsafeCell::new([0; BYTES]),
    used: AtomicUsize::new(0),
};

// SAFETY: what is given out lies behind all that was given out before, is as long and as
// aligned as asked for, and stays where it is.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = self.bytes.get().cast::<u8>();
        let place = |used: usize| (start.addr() + used).next_multiple_of(layout.align());
        let end = |used: usize| place(used) + layout.size() - start.addr();
        let take = |used: usize| Some(end(used)).filter(|end| *end <= BYTES);
        let order = Ordering::Relaxed;
        match self.used.fetch_update(order, order, take) {
            Ok(used) => start.with_addr(place(used)),
            Err(_) => ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

/// Takes all that the C library has left, and keeps it.
pub(crate) fn drain_the_c_library() {
    const LARGE: [usize; 3] = [1 << 20, 1 << 16, 1 << 12];
    // It keeps what was freed by its size.
    let sizes = (0..=1040_usize).rev().step_by(8);
    for size in LARGE.into_iter().chain(sizes) {
        // The compiler would leave out what is allocated for nothing.
        // SAFETY: what it returns is not used.
        while !hint::black_box(unsafe { libc::malloc(size) }).is_null() {}
    }
}
