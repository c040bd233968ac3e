//! Memory shared with the kernel's driver: mapped queues.
//!
//! # Safety
//! One of the modules with `unsafe`: it maps memory that the kernel writes to, and
//! accesses it through pointers. Every access is checked against the mapping's length, so
//! no caller can make it access other memory.
#![expect(unsafe_code, reason = "memory shared with the kernel")]

use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::process_mark::ProcessMark;
use crate::resource_list::Entry;

/// A driver's memory, or a part of it, mapped for reading and writing. Nothing else in this
/// process refers to the same bytes: a mapping is split, never shared. What is made of it shares at
/// most atomics: clones of a [`Word`], and [`SlotBytes`].
///
/// When the context is closed, zeroed private memory replaces it at the same address.
/// Accesses by other threads meanwhile remain valid.
#[derive(Debug)]
pub(crate) struct Mapping {
    memory: Arc<MappedMemory>,
    start: usize,
    length: usize,
}

impl Mapping {
    pub(crate) fn whole(memory: &Arc<MappedMemory>) -> Self {
        Self {
            memory: Arc::clone(memory),
            start: 0,
            length: memory.length,
        }
    }

    /// Splits it after `at` bytes; `None` if it is shorter.
    #[must_use]
    pub(crate) fn split_at(self, at: usize) -> Option<(Self, Self)> {
        let length = self.length.checked_sub(at)?;
        let rest = Self {
            memory: Arc::clone(&self.memory),
            start: self.start + at,
            length,
        };
        let first = Self { length: at, ..self };
        Some((first, rest))
    }

    /// A pointer to `size` bytes at `offset`; `None` beyond the end.
    fn pointer(&self, offset: usize, size: usize) -> Option<NonNull<u8>> {
        let end = offset.checked_add(size)?;
        if end > self.length {
            return None;
        }
        // SAFETY: the offset is within this part of the mapping, which is one
        // allocation.
        Some(unsafe { self.memory.base.add(self.start + offset) })
    }
}

/// A whole mapping; unmapped when dropped.
#[derive(Debug)]
pub(crate) struct MappedMemory {
    base: NonNull<u8>,
    length: usize,
    /// A forked child does not inherit the mapping, and must not unmap other memory at its
    /// address.
    mark: ProcessMark,
    /// In the list of those that are detached when the context is closed.
    entry: Option<Entry<Self>>,
}

// SAFETY: the memory is accessed only through `Mapping`s, which do not overlap, or what was made of
// them, and stays mapped until the value is dropped.
unsafe impl Send for MappedMemory {}
// SAFETY: as above.
unsafe impl Sync for MappedMemory {}

impl MappedMemory {
    pub(crate) fn new(
        file: BorrowedFd<'_>,
        offset: u64,
        length: usize,
        mark: &ProcessMark,
    ) -> io::Result<Self> {
        let offset = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mapped = Self {
            base: map(length, libc::MAP_SHARED, file.as_raw_fd(), offset)?,
            length,
            mark: mark.clone(),
            entry: None,
        };
        mapped.exclude_from_fork()?;
        Ok(mapped)
    }

    /// With its entry in a list.
    pub(crate) fn listed(mut self, entry: Entry<Self>) -> Self {
        self.entry = Some(entry);
        self
    }

    /// A child that inherited the mapping would delay the removal of the device.
    fn exclude_from_fork(&self) -> io::Result<()> {
        let (base, length) = (self.base.as_ptr().cast(), self.length);
        // SAFETY: the range is that of this mapping; the advice changes nothing
        // for this process.
        match unsafe { libc::madvise(base, length, libc::MADV_DONTFORK) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Replaces the driver's memory by private memory, which releases the driver's.
    ///
    /// # Errors
    /// Those of the kernel. The mapping is then unchanged.
    pub(crate) fn detach(&self) -> io::Result<()> {
        if !self.mark.is_here() {
            return Ok(());
        }
        // All allocations happen here: an `mmap(2)` onto the old memory would unmap that
        // before it checks the limits for the new.
        let new = map(self.length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)?;
        let (from, to) = (new.as_ptr().cast(), self.base.as_ptr());
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY:
        // - Both ranges are mappings owned here, of the same length.
        // - The new pages replace the old ones atomically, so accesses of other threads
        //   use one or the other. Moving untouched pages cannot fail after the old
        //   ones are unmapped: they are accounted already, and the limit of mappings is
        //   checked before (`mremap_to`).
        let moved = unsafe { libc::mremap(from, self.length, self.length, flags, to) };
        if moved != libc::MAP_FAILED {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        // SAFETY: it was not moved, and nothing else refers to it.
        let _ = unsafe { libc::munmap(from, self.length) };
        Err(error)
    }
}

impl Drop for MappedMemory {
    fn drop(&mut self) {
        if !self.mark.is_here() {
            // Dropping it takes the lock of the list, which a thread of the parent may have held.
            std::mem::forget(self.entry.take());
            return;
        }
        // SAFETY:
        // - Base and length are those of a mapping this value owns.
        // - Nothing borrows from it: its parts share ownership.
        // It cannot fail for a whole mapping.
        let _ = unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
    }
}

/// Maps memory at an address that the kernel chooses.
fn map(
    length: usize,
    flags: libc::c_int,
    fd: RawFd,
    offset: libc::off_t,
) -> io::Result<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: with a null address the kernel chooses memory that nothing else uses.
    let base = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, fd, offset) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(base.cast()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Memory of 32-bit words that this process and the kernel read and write.
#[derive(Debug)]
pub(crate) struct Words(Mapping);

impl Words {
    /// The words of a mapping.
    #[must_use]
    pub(crate) fn new(mapping: Mapping) -> Self {
        Self(mapping)
    }

    /// The word at `offset`; `None` if it is not aligned or beyond the end.
    #[must_use]
    pub(crate) fn word(&self, offset: usize) -> Option<Word> {
        let word: NonNull<AtomicU32> = self.0.pointer(offset, size_of::<AtomicU32>())?.cast();
        word.is_aligned().then(|| Word {
            _memory: Arc::clone(&self.0.memory),
            word,
        })
    }
}

/// A 32-bit word that this process and the kernel read and write. Clones are the same word.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    /// Keeps the word mapped.
    _memory: Arc<MappedMemory>,
    word: NonNull<AtomicU32>,
}

// SAFETY: it refers to an atomic in a mapping, which any thread may use and which the value
// keeps mapped.
unsafe impl Send for Word {}
// SAFETY: as above.
unsafe impl Sync for Word {}

impl Word {
    /// The word. The kernel accesses it with load-acquire and store-release.
    #[must_use]
    pub(crate) fn get(&self) -> &AtomicU32 {
        // SAFETY: aligned and within the mapping, which lives as long as `self`. This
        // process and the kernel access it only atomically: in this process only `Word`s
        // refer to those bytes.
        unsafe { self.word.as_ref() }
    }
}

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
        // thread of the process accesses, without references. The two do not overlap, because
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
    /// Loads that of a slot, without ordering.
    #[must_use]
    #[inline]
    pub(crate) fn load(&self, index: u32) -> u8 {
        let offset = self.stride * (index & self.mask) as usize;
        // SAFETY: `Slots::new` has checked that all slots are within the mapping, and
        // `Slots::bytes` that the byte is within each.
        let byte: NonNull<AtomicU8> = unsafe { self.start.add(offset) }.cast();
        // SAFETY: mapped as long as `self` lives; a byte is always aligned. This process stores
        // it only atomically, as the kernel fills the slots, and so does the kernel.
        unsafe { byte.as_ref() }.load(Ordering::Relaxed)
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
        // `SlotBytes`, which only load. The two do not overlap.
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
        // thread of the process accesses, without references. The two do not overlap, because
        // no slice refers to a mapping.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process_mark::tests::child_ends_while_locked;
    use crate::resource_list::ResourceList;

    const LENGTH: usize = 64;

    impl Content for u64 {
        type FilledBy = ThisProcess;
    }

    impl Content for [u64; 2] {
        type FilledBy = Kernel;
    }

    fn mapped() -> Arc<MappedMemory> {
        let file = tempfile::tempfile().unwrap();
        file.set_len(LENGTH as u64).unwrap();
        let mark = ProcessMark::new().unwrap();
        Arc::new(MappedMemory::new(std::os::fd::AsFd::as_fd(&file), 0, LENGTH, &mark).unwrap())
    }

    #[test]
    fn a_split_mapping_has_disjoint_parts() {
        let (head, slots) = Mapping::whole(&mapped()).split_at(16).unwrap();
        assert_eq!((head.length, slots.length), (16, LENGTH - 16));
        let head = Words::new(head);
        assert!(head.word(12).is_some());
        assert!(head.word(2).is_none() && head.word(16).is_none());
        let slots = Slots::<u64>::new(slots, 8, 4).unwrap();
        slots.write(0, 0, &[0xff; 8]);
        assert_eq!(head.word(12).unwrap().get().load(Ordering::Relaxed), 0);
        assert_eq!(slots.slot(4).load_byte(0), 0xff);
        assert!(Mapping::whole(&mapped()).split_at(LENGTH + 1).is_none());
    }

    #[test]
    fn a_detached_mapping_is_private_and_zeroed() {
        let mapped = mapped();
        let slots = Slots::<u64>::new(Mapping::whole(&mapped), 8, 8).unwrap();
        let slot = slots.slot(3);
        slot.store_half_word(2, 0xabcd);
        mapped.detach().unwrap();
        assert_eq!(slot.load_half_word(2), 0);
        slot.store_half_word(2, 0xabcd);
        let mut whole = 0_u64;
        slot.read(0, &mut whole);
        assert_eq!(whole.to_ne_bytes()[2..4], 0xabcd_u16.to_ne_bytes());
    }

    #[test]
    fn a_child_waits_for_no_thread_that_maps() {
        let list = ResourceList::default();
        let mapped = list.add(|entry| Arc::into_inner(mapped()).unwrap().listed(entry));
        assert!(child_ends_while_locked(|| list.lock(), || drop(mapped)));
    }

    #[test]
    fn a_byte_of_each_slot_is_loaded() {
        let slots = Slots::<[u64; 2]>::new(Mapping::whole(&mapped()), 16, 4).unwrap();
        slots.slot(2).store_byte(9, 7);
        let bytes = slots.bytes(9);
        assert_eq!([1, 2, 6].map(|index| bytes.load(index)), [0, 7, 7]);
        drop(slots);
        assert_eq!(bytes.load(2), 7);
    }

    #[test]
    #[should_panic(expected = "1 bytes at 16 of 16")]
    fn no_byte_behind_the_slots_is_loaded() {
        let slots = Slots::<[u64; 2]>::new(Mapping::whole(&mapped()), 16, 4).unwrap();
        let _ = slots.bytes(16);
    }

    #[test]
    fn slots_have_their_size() {
        let of_two = |stride| Slots::<[u64; 2]>::new(Mapping::whole(&mapped()), stride, 2);
        assert!(of_two(8).is_none() && of_two(16).is_some());
    }

    #[test]
    #[should_panic(expected = "2 bytes at 7 of 8")]
    fn nothing_is_written_behind_a_slot() {
        let slots = Slots::<u64>::new(Mapping::whole(&mapped()), 8, 8).unwrap();
        slots.write(0, 7, &[1; 2]);
    }

    #[test]
    #[should_panic(expected = "4 bytes at 6 of 8")]
    fn no_value_is_written_behind_a_slot() {
        let slots = Slots::<u64>::new(Mapping::whole(&mapped()), 8, 8).unwrap();
        slots.slot(0).put(6, &1_u32);
    }
}
