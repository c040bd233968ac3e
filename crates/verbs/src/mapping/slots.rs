//! Slots of queues that this process shares with the kernel.
//!
//! # Safety
//! A part of the module with `unsafe` for mapped memory.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, Ordering};

use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::{MappedMemory, Mapping};

/// An array of slots, each of which begins with a `T`, whose number is a power of two. Indices
/// are taken modulo the number of slots.
///
/// Only one thread at a time accesses the slots: they are `Send` but not `Sync`. Others only load a
/// byte of slots that the kernel fills, see [`SlotBytes`].
#[derive(Debug)]
pub(crate) struct Slots<T> {
    /// Keeps the slots mapped.
    memory: Arc<MappedMemory>,
    start: NonNull<u8>,
    stride: usize,
    mask: u32,
    /// Makes the type not `Sync`.
    one_thread: PhantomData<Cell<()>>,
    content: PhantomData<fn() -> T>,
}

// SAFETY: the memory is that of a mapping, which any thread may use and which the value keeps
// mapped. Nothing else refers to it but `SlotBytes`, which are atomics.
unsafe impl<T> Send for Slots<T> {}

/// Does not compile if [`Slots`] is `Sync`: the trait implementation would be ambiguous.
const _: fn() = || {
    trait NotSync<T> {
        fn check() {}
    }
    impl<T: ?Sized> NotSync<()> for T {}
    struct Sync_;
    impl<T: ?Sized + Sync> NotSync<Sync_> for T {}
    let _ = <Slots<u64> as NotSync<_>>::check;
};

impl<T> Slots<T> {
    /// `count` slots of `stride` bytes at the beginning of a mapping; `None` if `count` is not
    /// a power of two, slots are not aligned to 8 bytes or smaller than a `T`, or the mapping is
    /// shorter.
    #[must_use]
    pub(crate) fn new(mapping: Mapping, stride: usize, count: u32) -> Option<Self> {
        let bytes = stride.checked_mul(count.try_into().ok()?)?;
        let start = mapping.pointer(0, bytes)?;
        let aligned = start.cast::<u64>().is_aligned() && stride % 8 == 0 && stride > 0;
        let holds = aligned && stride >= size_of::<T>();
        (holds && count.is_power_of_two()).then(|| Self {
            memory: mapping.memory,
            start,
            stride,
            mask: count - 1,
            one_thread: PhantomData,
            content: PhantomData,
        })
    }

    /// The index of the last slot: one less than a power of two.
    #[must_use]
    #[inline]
    pub(crate) fn mask(&self) -> u32 {
        self.mask
    }

    /// The number of slots.
    #[must_use]
    pub(crate) fn count(&self) -> u32 {
        self.mask.saturating_add(1)
    }

    /// The size of a slot in bytes.
    #[must_use]
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// The `T` of a slot.
    #[inline]
    pub(crate) fn slot(&self, index: u32) -> Slot<'_, T> {
        Slot {
            start: self.pointer(index),
            slots: PhantomData,
        }
    }

    /// The byte at `offset` of each slot.
    ///
    /// # Panics
    /// If it is outside.
    #[must_use]
    pub(crate) fn bytes(&self, offset: usize) -> SlotBytes
    where
        T: Content<FilledBy = Kernel>,
    {
        check(offset, 1, size_of::<T>());
        SlotBytes {
            _memory: Arc::clone(&self.memory),
            // SAFETY: the offset is within the first slot.
            start: unsafe { self.start.add(offset) },
            stride: self.stride,
            mask: self.mask,
        }
    }

    #[inline]
    fn pointer(&self, index: u32) -> NonNull<u8> {
        let offset = self.stride * (index & self.mask) as usize;
        // SAFETY: `new` has checked that all slots are within the mapping, which is one
        // allocation.
        unsafe { self.start.add(offset) }
    }
}

impl<T: Content<FilledBy = ThisProcess>> Slots<T> {
    /// Copies bytes into a slot that this process owns. A later store-release publishes them to
    /// the kernel.
    ///
    /// # Panics
    /// If they are outside of the slot.
    #[inline]
    pub(crate) fn write(&self, index: u32, offset: usize, bytes: &[u8]) {
        check(offset, bytes.len(), self.stride);
        // SAFETY: the offset is within the slot.
        let to = unsafe { self.pointer(index).add(offset) };
        // SAFETY: the source is a slice. The destination is within the slot, which only this
        // thread of the process accesses, without references; or within the memory that another
        // thread replaces it by meanwhile, which no device reads. The two do not overlap, because
        // no slice refers to a mapping.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) };
    }

    /// Copies a value into a slot that this process owns, as [`write`](Self::write).
    ///
    /// # Panics
    /// If it is outside of the slot.
    #[inline]
    pub(crate) fn put<V: IntoBytes + Immutable>(&self, index: u32, offset: usize, value: &V) {
        self.write(index, offset, value.as_bytes());
    }
}

/// What is in slots.
pub(crate) trait Content {
    /// Who fills them: [`ThisProcess`], or the [`Kernel`], of whose slots this process changes
    /// bytes only atomically.
    type FilledBy;
}

/// Fills slots with requests.
#[derive(Debug)]
pub(crate) enum ThisProcess {}

/// Fills slots with completions.
#[derive(Debug)]
pub(crate) enum Kernel {}

/// A byte of each of the [`Slots`] that the kernel fills, which any thread may load.
#[derive(Debug)]
pub(crate) struct SlotBytes {
    /// Keeps the slots mapped.
    _memory: Arc<MappedMemory>,
    /// The byte of the first slot.
    start: NonNull<u8>,
    stride: usize,
    mask: u32,
}

// SAFETY: it refers to atomics in a mapping, which any thread may use and which the value keeps
// mapped.
unsafe impl Send for SlotBytes {}
// SAFETY: as above.
unsafe impl Sync for SlotBytes {}

impl SlotBytes {
    /// That of a slot. A forked child does not have it: whoever keeps the reference loads only in
    /// the process that mapped the slots.
    #[must_use]
    #[inline]
    pub(crate) fn get(&self, index: u32) -> &AtomicU8 {
        let offset = self.stride * (index & self.mask) as usize;
        // SAFETY: `Slots::new` has checked that all slots are within the mapping, and
        // `Slots::bytes` that the byte is within each.
        let byte: NonNull<AtomicU8> = unsafe { self.start.add(offset) }.cast();
        // SAFETY: mapped as long as `self` lives; a byte is always aligned. This process stores
        // it only atomically, as the kernel fills the slots, and so does the kernel.
        unsafe { byte.as_ref() }
    }
}

/// Bytes are within a slot.
///
/// # Panics
/// If they are not.
#[inline]
fn check(offset: usize, size: usize, of: usize) {
    let is_within = offset.checked_add(size).is_some_and(|end| end <= of);
    if !is_within {
        refuse(offset, size, of);
    }
}

/// With arguments by value, which keeps what is checked in registers.
#[cold]
#[inline(never)]
#[expect(
    clippy::panic,
    reason = "callers need save no registers for its return"
)]
fn refuse(offset: usize, size: usize, of: usize) -> ! {
    panic!("{size} bytes at {offset} of {of}");
}

/// The `T` at the beginning of one of the [`Slots`]. Checks of constant offsets cost nothing.
#[derive(Debug)]
pub(crate) struct Slot<'a, T> {
    start: NonNull<u8>,
    slots: PhantomData<&'a Slots<T>>,
}

impl<T> Slot<'_, T> {
    /// A pointer to `size` bytes.
    ///
    /// # Panics
    /// If they are outside: offset and size are constants of the caller.
    #[inline]
    fn pointer(&self, offset: usize, size: usize) -> NonNull<u8> {
        check(offset, size, size_of::<T>());
        // SAFETY: the offset is within the slot, as `Slots::new` and the line above have
        // checked.
        unsafe { self.start.add(offset) }
    }

    /// Copies a value out of a slot that this process owns, as a load-acquire has shown.
    ///
    /// # Panics
    /// If it is outside.
    #[inline]
    pub(crate) fn read<V: FromBytes + IntoBytes + Immutable>(&self, offset: usize, into: &mut V) {
        let bytes = into.as_mut_bytes();
        let from = self.pointer(offset, bytes.len());
        // SAFETY: the destination is an exclusive slice. The source is within the slot,
        // initialised as all mapped memory is. Only this thread of the process accesses it, but for
        // `SlotBytes`, which only load, and for another thread that replaces the memory when the
        // context is closed: whoever reads a slot checks afterwards that it is not, before it uses what
        // it has read. The two do not overlap.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), bytes.as_mut_ptr(), bytes.len()) };
    }

    /// Loads a byte that the kernel also writes, with acquire ordering.
    ///
    /// # Panics
    /// If it is outside.
    #[must_use]
    #[inline]
    pub(crate) fn load_byte(&self, offset: usize) -> u8 {
        self.byte(offset).load(Ordering::Acquire)
    }

    /// Stores such a byte with release ordering.
    ///
    /// # Panics
    /// If it is outside.
    #[inline]
    pub(crate) fn store_byte(&self, offset: usize, value: u8) {
        self.byte(offset).store(value, Ordering::Release);
    }

    /// Loads two bytes, as [`load_byte`](Self::load_byte).
    ///
    /// # Panics
    /// If they are outside, or at an odd offset.
    #[must_use]
    #[inline]
    pub(crate) fn load_half_word(&self, offset: usize) -> u16 {
        self.half_word(offset).load(Ordering::Acquire)
    }

    #[inline]
    fn byte(&self, offset: usize) -> &AtomicU8 {
        let pointer = self.pointer(offset, 1).cast();
        // SAFETY: within the slot, which is mapped as long as `Slots` are borrowed; a byte is
        // always aligned. Only this thread of the process accesses it, but for `SlotBytes`, which
        // load it atomically, and the kernel writes it atomically.
        unsafe { pointer.as_ref() }
    }

    #[inline]
    fn half_word(&self, offset: usize) -> &AtomicU16 {
        assert!(offset % 2 == 0, "aligned");
        let pointer = self.pointer(offset, 2).cast();
        // SAFETY: within the slot, which is mapped as long as `Slots` are borrowed; slots are
        // aligned to 8 bytes and the offset to 2. Only this thread of the process accesses it,
        // and the kernel writes it atomically.
        unsafe { pointer.as_ref() }
    }
}

impl<T: Content<FilledBy = ThisProcess>> Slot<'_, T> {
    /// Stores two bytes, as [`store_byte`](Self::store_byte).
    ///
    /// # Panics
    /// If they are outside, or at an odd offset.
    #[inline]
    pub(crate) fn store_half_word(&self, offset: usize, value: u16) {
        self.half_word(offset).store(value, Ordering::Release);
    }

    /// Copies a value in, as [`Slots::write`].
    ///
    /// # Panics
    /// If it is outside.
    #[inline]
    pub(crate) fn put<V: IntoBytes + Immutable>(&self, offset: usize, value: &V) {
        let bytes = value.as_bytes();
        let to = self.pointer(offset, bytes.len());
        // SAFETY: the source is a slice. The destination is within the slot, which only this
        // thread of the process accesses, without references; or within the memory that another
        // thread replaces it by meanwhile, which no device reads. The two do not overlap, because
        // no slice refers to a mapping.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) };
    }
}
