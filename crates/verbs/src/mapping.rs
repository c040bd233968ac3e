//! Memory shared with the kernel's driver: queues, mapped.
//!
//! # Safety
//! One of the modules with `unsafe`: it maps memory that the kernel writes to, and
//! reads and writes there through pointers. Every access is checked against the
//! mapping's length, so nothing outside can make one go astray.
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

/// A driver's memory, or a part of it, mapped for reading and writing. Nothing else of
/// this process's refers to the same bytes: it is cut in two rather than shared.
///
/// When its context is closed it becomes memory of this process alone, zeroed, at
/// the same address. Whoever reads or writes meanwhile goes on doing so.
#[derive(Debug)]
pub(crate) struct Mapping {
    memory: Arc<MappedMemory>,
    start: usize,
    length: usize,
}

impl Mapping {
    pub(crate) fn of(memory: &Arc<MappedMemory>) -> Self {
        Self {
            memory: Arc::clone(memory),
            start: 0,
            length: memory.length,
        }
    }

    /// Cuts it in two behind its first `at` bytes; `None` if it has not so many.
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

    /// Where `size` bytes at `offset` are; `None` beyond the end.
    fn at(&self, offset: usize, size: usize) -> Option<NonNull<u8>> {
        let end = offset.checked_add(size)?;
        if end > self.length {
            return None;
        }
        // SAFETY: the offset is within this part of the mapping, which is one
        // allocation.
        Some(unsafe { self.memory.base.add(self.start + offset) })
    }
}

/// The whole of what was mapped, until dropped.
#[derive(Debug)]
pub(crate) struct MappedMemory {
    base: NonNull<u8>,
    length: usize,
    /// Whose it is: in a child it is not there, and what is in its place is not
    /// this one's to unmap.
    mark: Arc<ProcessMark>,
}

// SAFETY: the memory is reached through the parts of it, of which each says who may,
// and stays mapped until the value is dropped.
unsafe impl Send for MappedMemory {}
// SAFETY: as above.
unsafe impl Sync for MappedMemory {}

impl MappedMemory {
    pub(crate) fn new(
        file: BorrowedFd<'_>,
        offset: u64,
        length: usize,
        mark: &Arc<ProcessMark>,
    ) -> io::Result<Self> {
        let offset = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mapped = Self {
            base: map(length, libc::MAP_SHARED, file.as_raw_fd(), offset)?,
            length,
            mark: Arc::clone(mark),
        };
        mapped.stay_here()?;
        Ok(mapped)
    }

    /// Children of this process have nothing to do with it, and would keep the
    /// device from going.
    fn stay_here(&self) -> io::Result<()> {
        let (base, length) = (self.base.as_ptr().cast(), self.length);
        // SAFETY: the range is that of this mapping; the advice changes nothing
        // for this process.
        match unsafe { libc::madvise(base, length, libc::MADV_DONTFORK) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Puts memory of this process alone in the place of the driver's, which the
    /// driver is rid of then.
    ///
    /// # Errors
    /// The kernel's, and the driver's memory is where it was.
    pub(crate) fn detach(&self) -> io::Result<()> {
        if !self.mark.is_here() {
            return Ok(());
        }
        // All that can be refused is asked for here: `mmap(2)` onto the old memory
        // counts the new against the limits when the old has gone.
        let new = map(self.length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)?;
        let (from, to) = (new.as_ptr().cast(), self.base.as_ptr());
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY:
        // - Both ranges are of mappings owned here, as long as each other.
        // - The old pages give way to the new at once, so accesses of other threads
        //   find either. Moving pages that nobody has touched takes nothing that
        //   may be refused once the old ones have gone: they are counted already,
        //   and the limit of mappings is looked at before (`mremap_to`).
        let moved = unsafe { libc::mremap(from, self.length, self.length, flags, to) };
        if moved != libc::MAP_FAILED {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        // SAFETY: it is where it was, and nobody else's.
        let _ = unsafe { libc::munmap(from, self.length) };
        Err(error)
    }
}

impl Drop for MappedMemory {
    fn drop(&mut self) {
        if !self.mark.is_here() {
            return;
        }
        // SAFETY:
        // - Base and length are those of a mapping this value owns.
        // - Nothing borrows from it: its parts share ownership.
        // It cannot fail for a whole mapping, and there would be nobody to tell.
        let _ = unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
    }
}

/// Memory where the kernel chooses.
fn map(
    length: usize,
    flags: libc::c_int,
    fd: RawFd,
    offset: libc::off_t,
) -> io::Result<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: with a null place the kernel chooses memory that nothing else uses.
    let base = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, fd, offset) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(base.cast()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Memory that is words of 32 bits, which both sides read and write.
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
        let word: NonNull<AtomicU32> = self.0.at(offset, size_of::<AtomicU32>())?.cast();
        word.is_aligned().then(|| Word {
            _memory: Arc::clone(&self.0.memory),
            word,
        })
    }
}

/// A word of 32 bits that both sides read and write.
#[derive(Debug)]
pub(crate) struct Word {
    /// Kept for as long as this refers to it.
    _memory: Arc<MappedMemory>,
    word: NonNull<AtomicU32>,
}

// SAFETY: it refers to an atomic in a mapping, which may be used by any thread and
// which the value keeps.
unsafe impl Send for Word {}
// SAFETY: as above.
unsafe impl Sync for Word {}

impl Word {
    /// The word. Its counterpart in the kernel is a load-acquire or a
    /// store-release of the other side.
    #[must_use]
    pub(crate) fn get(&self) -> &AtomicU32 {
        // SAFETY: aligned and within the mapping, which lives as long as `self`;
        // whoever else writes there, in this process or the kernel, does so
        // atomically: in this process nothing but words refers to those bytes.
        unsafe { self.word.as_ref() }
    }
}

/// An array of slots, a power of two of them. An index of a slot counts on for ever;
/// it is taken modulo the number of slots.
///
/// Slots are one thread's at a time, so that no two accesses of this process's meet:
/// they can be sent to another, but not shared.
#[derive(Debug)]
pub(crate) struct Slots {
    mapping: Mapping,
    stride: usize,
    mask: u32,
    /// Not to be shared.
    one_thread: PhantomData<Cell<()>>,
}

/// Does not compile if [`Slots`] are `Sync`: which trait is meant would be ambiguous then.
const _: fn() = || {
    trait NotSync<T> {
        fn check() {}
    }
    impl<T: ?Sized> NotSync<()> for T {}
    struct Sync_;
    impl<T: ?Sized + Sync> NotSync<Sync_> for T {}
    let _ = <Slots as NotSync<_>>::check;
};

impl Slots {
    /// The `count` slots of `stride` bytes with which a mapping begins; `None` if
    /// `count` is no power of two, slots are not aligned to 8 bytes, or the mapping
    /// ends before they do.
    #[must_use]
    pub(crate) fn new(mapping: Mapping, stride: usize, count: u32) -> Option<Self> {
        let bytes = stride.checked_mul(count.try_into().ok()?)?;
        let start = mapping.at(0, bytes)?;
        let aligned = start.cast::<u64>().is_aligned() && stride % 8 == 0 && stride > 0;
        (aligned && count.is_power_of_two()).then(|| Self {
            mapping,
            stride,
            mask: count - 1,
            one_thread: PhantomData,
        })
    }

    /// How many there are.
    #[must_use]
    pub(crate) fn count(&self) -> u32 {
        self.mask.saturating_add(1)
    }

    /// Bytes of a slot.
    #[must_use]
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// Where something is in a slot.
    ///
    /// # Panics
    /// If it is not within a slot: its place and size are the caller's constants.
    fn place(&self, index: u32, offset: usize, size: usize) -> NonNull<u8> {
        let within = offset
            .checked_add(size)
            .is_some_and(|end| end <= self.stride);
        assert!(within, "{size} bytes at {offset} of {}", self.stride);
        let slot = self.stride * (index & self.mask) as usize;
        let mapping = &self.mapping;
        // SAFETY: `new` found all slots within the mapping, which is one
        // allocation; the place is within a slot.
        unsafe { mapping.memory.base.add(mapping.start + slot + offset) }
    }

    /// Copies bytes into a slot that is this side's to write. Says nothing to the
    /// other side: that takes a store-release behind it.
    ///
    /// # Panics
    /// If they are not within the slot.
    pub(crate) fn write(&self, index: u32, offset: usize, bytes: &[u8]) {
        let place = self.place(index, offset, bytes.len());
        // SAFETY: the source is a slice; the destination is within the mapping, where
        // of this process only this thread is, and no Rust reference leads; the two do
        // not overlap, because nothing of this process's lies in a mapping of its own.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place.as_ptr(), bytes.len()) };
    }

    /// Copies a value out of a slot that a load-acquire found to be this side's
    /// to read.
    ///
    /// # Panics
    /// If it is not within the slot.
    #[must_use]
    pub(crate) fn read<T: FromBytes + IntoBytes + Immutable>(
        &self,
        index: u32,
        offset: usize,
    ) -> T {
        let place = self.place(index, offset, size_of::<T>());
        let mut value = T::new_zeroed();
        let bytes = value.as_mut_bytes();
        // SAFETY: the destination is an exclusive slice; the source is within the
        // mapping, initialised as all mapped memory is, and of this process only this
        // thread is there; the two do not overlap.
        unsafe { ptr::copy_nonoverlapping(place.as_ptr(), bytes.as_mut_ptr(), bytes.len()) };
        value
    }

    /// Reads a byte of a slot that both sides read and write, before what the other
    /// side wrote ahead of it.
    ///
    /// # Panics
    /// If it is not within the slot.
    #[must_use]
    pub(crate) fn load_byte(&self, index: u32, offset: usize) -> u8 {
        self.byte(index, offset).load(Ordering::Acquire)
    }

    /// Writes such a byte, behind all that this side wrote or read before.
    ///
    /// # Panics
    /// If it is not within the slot.
    pub(crate) fn store_byte(&self, index: u32, offset: usize, value: u8) {
        self.byte(index, offset).store(value, Ordering::Release);
    }

    /// Reads two bytes, as [`load_byte`](Self::load_byte) one.
    ///
    /// # Panics
    /// If they are not within the slot, or at an odd offset.
    #[must_use]
    pub(crate) fn load_half_word(&self, index: u32, offset: usize) -> u16 {
        self.half_word(index, offset).load(Ordering::Acquire)
    }

    /// Writes two bytes, as [`store_byte`](Self::store_byte) one.
    ///
    /// # Panics
    /// If they are not within the slot, or at an odd offset.
    pub(crate) fn store_half_word(&self, index: u32, offset: usize, value: u16) {
        self.half_word(index, offset)
            .store(value, Ordering::Release);
    }

    fn byte(&self, index: u32, offset: usize) -> &AtomicU8 {
        let place = self.place(index, offset, 1).cast();
        // SAFETY: within the mapping, which lives as long as `self`; a byte is
        // always aligned; of this process only this thread is there, and the other
        // side writes there atomically.
        unsafe { place.as_ref() }
    }

    fn half_word(&self, index: u32, offset: usize) -> &AtomicU16 {
        assert!(offset % 2 == 0, "aligned");
        let place = self.place(index, offset, 2).cast();
        // SAFETY: within the mapping, which lives as long as `self`; slots are
        // aligned to 8 bytes and the offset to 2; who else is there is said above.
        unsafe { place.as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: usize = 64;

    fn mapped() -> Arc<MappedMemory> {
        let file = tempfile::tempfile().unwrap();
        file.set_len(LENGTH as u64).unwrap();
        let mark = Arc::new(ProcessMark::new().unwrap());
        Arc::new(MappedMemory::new(std::os::fd::AsFd::as_fd(&file), 0, LENGTH, &mark).unwrap())
    }

    #[test]
    fn parts_begin_where_others_end() {
        let (head, slots) = Mapping::of(&mapped()).split_at(16).unwrap();
        assert_eq!((head.length, slots.length), (16, LENGTH - 16));
        let head = Words::new(head);
        assert!(head.word(12).is_some());
        assert!(head.word(2).is_none() && head.word(16).is_none());
        let slots = Slots::new(slots, 8, 4).unwrap();
        slots.write(0, 0, &[0xff; 8]);
        assert_eq!(head.word(12).unwrap().get().load(Ordering::Relaxed), 0);
        assert_eq!(slots.load_byte(4, 0), 0xff);
        assert!(Mapping::of(&mapped()).split_at(LENGTH + 1).is_none());
    }

    #[test]
    fn what_is_detached_is_there_and_empty() {
        let mapped = mapped();
        let slots = Slots::new(Mapping::of(&mapped), 8, 8).unwrap();
        slots.store_half_word(3, 2, 0xabcd);
        mapped.detach().unwrap();
        assert_eq!(slots.load_half_word(3, 2), 0);
        slots.store_half_word(3, 2, 0xabcd);
        assert_eq!(
            slots.read::<u64>(3, 0).to_ne_bytes()[2..4],
            0xabcd_u16.to_ne_bytes()
        );
    }
}
