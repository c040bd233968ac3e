//! Memory shared with the kernel's driver: queues, mapped.
//!
//! # Safety
//! One of the modules with `unsafe`: it maps memory that the kernel writes to, and
//! reads and writes there through pointers. Every access is checked against the
//! mapping's length, so nothing outside can make one go astray.
#![expect(unsafe_code, reason = "memory shared with the kernel")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32};

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A driver's memory, mapped for reading and writing until dropped.
///
/// When its context is closed it becomes memory of this process alone, zeroed, at
/// the same address. Whoever reads or writes meanwhile goes on doing so.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    length: usize,
    /// Whose it is: in a child it is not there, and what is in its place is not
    /// this one's to unmap.
    process: u32,
}

// SAFETY: the memory is reached through raw pointers and atomics only, by any
// thread, and stays mapped until the value is dropped.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub(crate) fn new(file: &File, offset: u64, length: usize) -> io::Result<Self> {
        let offset = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        let base = map(
            ptr::null_mut(),
            length,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            offset,
        )?;
        let process = std::process::id();
        let mapping = Self {
            base,
            length,
            process,
        };
        mapping.stay_here()?;
        Ok(mapping)
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
    pub(crate) fn detach(&self) -> io::Result<()> {
        if self.process != std::process::id() {
            return Ok(());
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        map(self.base.as_ptr().cast(), self.length, flags, -1, 0).map(drop)
    }

    /// Bytes it holds.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "none is empty")]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Where `size` bytes at `offset` are; `None` beyond the end.
    fn at(&self, offset: usize, size: usize) -> Option<NonNull<u8>> {
        let end = offset.checked_add(size)?;
        if end > self.length {
            return None;
        }
        // SAFETY: the offset is within the mapping, which is one allocation.
        Some(unsafe { self.base.add(offset) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            return;
        }
        // SAFETY:
        // - Base and length are those of a mapping this value owns.
        // - Nothing borrows from it: `Word` and `Slots` share ownership.
        // It cannot fail for a whole mapping, and there would be nobody to tell.
        let _ = unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
    }
}

fn map(
    place: *mut libc::c_void,
    length: usize,
    flags: libc::c_int,
    fd: RawFd,
    offset: libc::off_t,
) -> io::Result<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: with a null place the kernel chooses memory that nothing else
    // uses. With `MAP_FIXED` the place is that of a `Mapping` and exactly as
    // long; its pages are replaced at once, so accesses of other threads find
    // either the old or the new ones.
    let base = unsafe { libc::mmap(place, length, protection, flags, fd, offset) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(base.cast()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// A word of 32 bits that both sides read and write.
#[derive(Debug)]
pub struct Word {
    /// Kept for as long as this refers to it.
    _mapping: Arc<Mapping>,
    word: NonNull<AtomicU32>,
}

// SAFETY: it refers to an atomic in a mapping, which may be used by any thread and
// which the value keeps.
unsafe impl Send for Word {}
// SAFETY: as above.
unsafe impl Sync for Word {}

impl Word {
    /// The word at `offset`; `None` if it is not aligned or not in the mapping.
    #[must_use]
    pub fn new(mapping: &Arc<Mapping>, offset: usize) -> Option<Self> {
        let word = mapping.at(offset, size_of::<AtomicU32>())?.cast();
        word.is_aligned().then(|| Self {
            _mapping: Arc::clone(mapping),
            word,
        })
    }

    /// The word. Its counterpart in the kernel is a load-acquire or a
    /// store-release of the other side.
    #[must_use]
    pub fn get(&self) -> &AtomicU32 {
        // SAFETY: aligned and within the mapping, which lives as long as `self`;
        // whoever else writes there, in this process or the kernel, does so
        // atomically.
        unsafe { self.word.as_ref() }
    }
}

/// An array of slots, a power of two of them, in a mapping. An index of a slot
/// counts on for ever; it is taken modulo the number of slots.
#[derive(Debug)]
pub struct Slots {
    mapping: Arc<Mapping>,
    start: usize,
    stride: usize,
    mask: u32,
}

impl Slots {
    /// The array of `count` slots of `stride` bytes at `start`; `None` if `count`
    /// is no power of two, slots are not aligned to 8 bytes, or the mapping ends
    /// before they do.
    #[must_use]
    pub fn new(mapping: &Arc<Mapping>, start: usize, stride: usize, count: u32) -> Option<Self> {
        let bytes = stride.checked_mul(count.try_into().ok()?)?;
        mapping.at(start, bytes)?;
        let aligned = start % 8 == 0 && stride % 8 == 0 && stride > 0;
        (aligned && count.is_power_of_two()).then(|| Self {
            mapping: Arc::clone(mapping),
            start,
            stride,
            mask: count - 1,
        })
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.mask.saturating_add(1)
    }

    /// Bytes of a slot.
    #[must_use]
    pub fn stride(&self) -> usize {
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
        // SAFETY: `new` found all slots within the mapping, which is one
        // allocation; the place is within a slot.
        unsafe { self.mapping.base.add(self.start + slot + offset) }
    }

    /// Copies bytes into a slot that is this side's to write. Says nothing to the
    /// other side: that takes a store-release behind it.
    ///
    /// # Panics
    /// If they are not within the slot.
    pub fn write(&self, index: u32, offset: usize, bytes: &[u8]) {
        let place = self.place(index, offset, bytes.len());
        // SAFETY: the source is a slice; the destination is within the mapping, no
        // Rust reference leads there, and the two do not overlap, because nothing
        // of this process's lies in a mapping of its own.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place.as_ptr(), bytes.len()) };
    }

    /// Copies a value out of a slot that a load-acquire found to be this side's
    /// to read.
    ///
    /// # Panics
    /// If it is not within the slot.
    #[must_use]
    pub fn read<T: FromBytes + IntoBytes + Immutable>(&self, index: u32, offset: usize) -> T {
        let place = self.place(index, offset, size_of::<T>());
        let mut value = T::new_zeroed();
        let bytes = value.as_mut_bytes();
        // SAFETY: the destination is an exclusive slice; the source is within the
        // mapping, initialised as all mapped memory is, and the two do not overlap.
        unsafe { ptr::copy_nonoverlapping(place.as_ptr(), bytes.as_mut_ptr(), bytes.len()) };
        value
    }

    /// A byte of a slot that both sides read and write.
    ///
    /// # Panics
    /// If it is not within the slot.
    #[must_use]
    pub fn byte(&self, index: u32, offset: usize) -> &AtomicU8 {
        let place = self.place(index, offset, 1).cast();
        // SAFETY: within the mapping, which lives as long as `self`; a byte is
        // always aligned; whoever else writes there does so atomically.
        unsafe { place.as_ref() }
    }

    /// Two bytes of a slot, at an even offset, that both sides read and write.
    ///
    /// # Panics
    /// If they are not within the slot, or not aligned.
    #[must_use]
    pub fn half_word(&self, index: u32, offset: usize) -> &AtomicU16 {
        assert!(offset % 2 == 0, "aligned");
        let place = self.place(index, offset, 2).cast();
        // SAFETY: within the mapping, which lives as long as `self` and starts on
        // a page; slots are aligned to 8 bytes and the offset to 2; whoever else
        // writes there does so atomically.
        unsafe { place.as_ref() }
    }
}
