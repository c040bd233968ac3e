//! Memory shared with the kernel's driver: mapped queues.
//!
//! # Safety
//! One of the modules with `unsafe`, with its parts: it maps memory that the kernel writes to, and
//! accesses it through pointers. Every access is checked against the mapping's length, so
//! no caller can make it access other memory.
#![expect(unsafe_code, reason = "memory shared with the kernel")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::fork_detector::ForkDetector;
use crate::resource_list::Entry;

mod slots;
mod words;

pub(crate) use slots::{Content, Kernel, Slot, SlotBytes, Slots, ThisProcess};
pub(crate) use words::{Word, Words};

/// A driver's memory, or a part of it, mapped for reading and writing. Nothing else in this
/// process refers to the same bytes: a mapping is split, never shared. What is made of it shares at
/// most atomics: clones of a [`Word`], and [`SlotBytes`].
///
/// When the context is closed, memory of the process [replaces](AfterClose) it at the same address.
/// Accesses by other threads meanwhile remain valid.
#[derive(Debug)]
pub(crate) struct Mapping {
    memory: Arc<MappedMemory>,
    start: usize,
    length: usize,
}

/// What the memory contains that replaces the driver's when the context is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterClose {
    /// Zeros.
    Zeros,
    /// What the driver has written; zeros if the kernel does not copy it.
    Copy,
}

impl Mapping {
    pub(crate) fn whole(memory: Arc<MappedMemory>) -> Self {
        let length = memory.length;
        Self {
            memory,
            start: 0,
            length,
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
    after_close: AfterClose,
    /// A forked child does not inherit the mapping, and must not unmap other memory at its
    /// address.
    fork_detector: ForkDetector,
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
        after_close: AfterClose,
        fork_detector: &ForkDetector,
    ) -> io::Result<Self> {
        let offset = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mapped = Self {
            base: map(length, libc::MAP_SHARED, file.as_raw_fd(), offset)?,
            length,
            after_close,
            fork_detector: fork_detector.clone(),
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

    /// Replaces the driver's memory by memory of the process, which releases the driver's.
    ///
    /// # Errors
    /// Those of the kernel. The driver's memory then stays mapped.
    pub(crate) fn detach(&self) -> io::Result<()> {
        if !self.fork_detector.is_same_process() {
            return Ok(());
        }
        // The memory is allocated here: an `mmap(2)` onto the old memory would unmap that
        // before it checks the limits for the new. Shared, because that of a private mapping
        // would be checked once more when it is moved, after the old one was unmapped.
        let new = map(self.length, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0)?;
        if self.after_close == AfterClose::Copy {
            self.copy_to(new);
        }
        let (from, to) = (new.as_ptr().cast(), self.base.as_ptr());
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY:
        // - Both ranges are mappings owned here, of the same length.
        // - The new pages replace the old ones atomically, so accesses of other threads
        //   use one or the other, unless the move fails.
        let moved = unsafe { libc::mremap(from, self.length, self.length, flags, to) };
        if moved != libc::MAP_FAILED {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        // SAFETY: it was not moved, and nothing else refers to it.
        let _ = unsafe { libc::munmap(from, self.length) };
        // `mremap_to` unmaps the old range before it allocates what describes the new one. The
        // advice finds a range that is not mapped, unless another thread has mapped something there
        // since: nothing can exclude that.
        if self.exclude_from_fork().is_err() {
            self.fill();
            return Ok(());
        }
        Err(error)
    }

    /// Copies what the driver has written to a new mapping of the same length. The kernel copies,
    /// since other threads may change the memory meanwhile. A change after that is lost: a completion
    /// that was taken out may be in the ring again.
    fn copy_to(&self, new: NonNull<u8>) {
        let part = |base: NonNull<u8>| libc::iovec {
            iov_base: base.as_ptr().cast(),
            iov_len: self.length,
        };
        let (to, from) = (part(new), part(self.base));
        let (to, from) = (&raw const to, &raw const from);
        // This thread: the process's first one, whose id the process has, may have ended, and then
        // has no memory (`process_vm_rw_core`).
        let this = nix::unistd::gettid().as_raw();
        // SAFETY: the kernel reads this mapping, and writes into the new one, which nothing else
        // refers to.
        let copied = unsafe { libc::process_vm_readv(this, to, 1, from, 1, 0) };
        if usize::try_from(copied) != Ok(self.length) {
            // SAFETY: as above.
            unsafe { new.write_bytes(0, self.length) };
        }
    }

    /// Maps memory where the driver's was. Without it, other threads would access what somebody
    /// else maps there.
    #[cold]
    fn fill(&self) {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        let base = self.base.as_ptr().cast();
        // SAFETY: nothing is replaced: the kernel maps the range only if nothing is mapped in it.
        let filled = unsafe { libc::mmap(base, self.length, protection, flags, -1, 0) };
        if filled != base {
            std::process::abort();
        }
    }
}

impl Drop for MappedMemory {
    fn drop(&mut self) {
        if !self.fork_detector.is_same_process() {
            // Dropping it takes the lock of the list, which a thread of the parent may have held.
            std::mem::forget(self.entry.take());
            return;
        }
        // SAFETY:
        // - Base and length are those of a mapping this value owns.
        // - Nothing borrows from it: its parts share ownership.
        // If the kernel has to split a mapping for it and cannot, the memory stays mapped.
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

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::fork_detector::tests::child_ends_while_locked;
    use crate::resource_list::ResourceList;

    const LENGTH: usize = 64;

    impl Content for u64 {
        type FilledBy = ThisProcess;
    }

    impl Content for [u64; 2] {
        type FilledBy = Kernel;
    }

    fn mapped() -> Arc<MappedMemory> {
        mapped_until(AfterClose::Zeros)
    }

    fn mapped_until(after_close: AfterClose) -> Arc<MappedMemory> {
        let file = tempfile::tempfile().unwrap();
        file.set_len(LENGTH as u64).unwrap();
        let (file, fork_detector) = (file.as_fd(), ForkDetector::new().unwrap());
        let mapped = MappedMemory::new(file, 0, LENGTH, after_close, &fork_detector);
        Arc::new(mapped.unwrap())
    }

    #[test]
    fn a_split_mapping_has_disjoint_parts() {
        let (head, slots) = Mapping::whole(mapped()).split_at(16).unwrap();
        assert_eq!((head.length, slots.length), (16, LENGTH - 16));
        let head = Words::new(head);
        assert!(head.word(12).is_some());
        assert!(head.word(2).is_none() && head.word(16).is_none());
        let slots = Slots::<u64>::new(slots, 8, 4).unwrap();
        slots.write(0, 0, &[0xff; 8]);
        assert_eq!(head.word(12).unwrap().get().load(Ordering::Relaxed), 0);
        assert_eq!(slots.slot(4).load_byte(0), 0xff);
        assert!(Mapping::whole(mapped()).split_at(LENGTH + 1).is_none());
    }

    #[test]
    fn a_detached_mapping_is_zeroed_memory() {
        let mapped = mapped();
        let slots = Slots::<u64>::new(Mapping::whole(Arc::clone(&mapped)), 8, 8).unwrap();
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
    fn what_the_driver_has_written_is_kept_where_it_is_of_use() {
        let mapped = mapped_until(AfterClose::Copy);
        let slots = Slots::<u64>::new(Mapping::whole(Arc::clone(&mapped)), 8, 8).unwrap();
        for slot in 0..8_u16 {
            slots.slot(slot.into()).store_half_word(2, 0xab00 | slot);
        }
        mapped.detach().unwrap();
        for slot in 0..8_u16 {
            let loaded = slots.slot(slot.into()).load_half_word(2);
            assert_eq!(loaded, 0xab00 | slot);
        }
        assert_eq!(slots.slot(7).load_half_word(4), 0);
    }

    #[test]
    fn a_child_waits_for_no_thread_that_maps() {
        let list = ResourceList::default();
        let mapped = list.add(|entry| Arc::into_inner(mapped()).unwrap().listed(entry));
        assert!(child_ends_while_locked(|| list.lock(), || drop(mapped)));
    }

    #[test]
    fn a_byte_of_each_slot_is_loaded() {
        let slots = Slots::<[u64; 2]>::new(Mapping::whole(mapped()), 16, 4).unwrap();
        slots.slot(2).store_byte(9, 7);
        let bytes = slots.bytes(9);
        assert_eq!(
            [1, 2, 6].map(|index| bytes.get(index).load(Ordering::Relaxed)),
            [0, 7, 7]
        );
        drop(slots);
        assert_eq!(bytes.get(2).load(Ordering::Relaxed), 7);
    }

    #[test]
    #[should_panic(expected = "1 bytes at 16 of 16")]
    fn no_byte_behind_the_slots_is_loaded() {
        let slots = Slots::<[u64; 2]>::new(Mapping::whole(mapped()), 16, 4).unwrap();
        let _ = slots.bytes(16);
    }

    #[test]
    fn slots_have_their_size() {
        let of_two = |stride| Slots::<[u64; 2]>::new(Mapping::whole(mapped()), stride, 2);
        assert!(of_two(8).is_none() && of_two(16).is_some());
    }

    #[test]
    #[should_panic(expected = "2 bytes at 7 of 8")]
    fn nothing_is_written_behind_a_slot() {
        let slots = Slots::<u64>::new(Mapping::whole(mapped()), 8, 8).unwrap();
        slots.write(0, 7, &[1; 2]);
    }

    #[test]
    #[should_panic(expected = "4 bytes at 6 of 8")]
    fn no_value_is_written_behind_a_slot() {
        let slots = Slots::<u64>::new(Mapping::whole(mapped()), 8, 8).unwrap();
        slots.slot(0).put(6, &1_u32);
    }
}
