//! Commands do not allocate.
#![expect(unsafe_code, reason = "an allocator that counts is an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicIsize, Ordering};

use rdmacm_core::{EventKind, PortSpace};
use rdmacm_tests::{SECOND, Site, expect, free_port};

use crate::freed_memory;
use rdmacm_tests_macros::case;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// The bytes that the process has allocated and not freed.
static LIVE: AtomicIsize = AtomicIsize::new(0);

/// The bytes that the process has allocated and not freed, for all tests together: most
/// useful to a test that runs alone.
pub(crate) fn live_bytes() -> isize {
    LIVE.load(Ordering::Relaxed)
}

/// The system's allocator with counts for each thread and for the process. It does not
/// free blocks that [`freed_memory`] watches.
struct CountingAllocator;

// SAFETY: every call goes to the system's allocator unchanged, except that watched
// blocks are kept instead of freed. The counter is a thread-local cell, which does not
// allocate.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        LIVE.fetch_add(
            isize::try_from(layout.size()).unwrap_or(isize::MAX),
            Ordering::Relaxed,
        );
        // SAFETY: the caller fulfils this function's contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(
            isize::try_from(layout.size()).unwrap_or(isize::MAX),
            Ordering::Relaxed,
        );
        if freed_memory::keep_if_watched(pointer, layout) {
            return;
        }
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn allocations(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

#[case(each_abi)]
fn commands_allocate_nothing(site: &Site) {
    let (channel, id) = site.id();
    let mut event = None;
    let mut wait_for = |kind| event = Some(expect(&channel, kind));
    assert_eq!(
        allocations(|| drop(black_box(Box::new(site.v4)))),
        1,
        "they are counted"
    );
    assert_eq!(
        allocations(|| assert!(id.addresses().is_ok())),
        1,
        "the first query of an id allocates its cache"
    );
    let commands = || {
        id.set_tos(0).unwrap();
        id.set_reuse_addr(true).unwrap();
        id.set_af_only(true).unwrap();
        id.set_ack_timeout(14).unwrap();
        id.resolve_addr(None, site.v4(7471), SECOND).unwrap();
        wait_for(EventKind::AddrResolved);
        id.resolve_route(SECOND).unwrap();
        wait_for(EventKind::RouteResolved);
        id.addresses().unwrap();
        id.gids().unwrap();
        id.path_records().unwrap();
    };
    assert_eq!(allocations(commands), 0);
    let listener = channel.create_id(PortSpace::TCP).unwrap();
    let listening = || {
        listener.bind(site.v4(free_port())).unwrap();
        listener.listen(1).unwrap();
    };
    assert_eq!(allocations(listening), 0);
    assert_eq!(allocations(|| drop(id)), 0);
}
