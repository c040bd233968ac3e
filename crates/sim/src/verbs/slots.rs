//! Queues in memory that the program maps, in the format of siw.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rdmacm_abi::uverbs::siw::{CqControl, Cqe, CqeFlags, NotifyFlags, Rqe, Sqe, WqeFlags};
use zerocopy::{FromBytes, IntoBytes};

use super::ring::RingMemory;

/// A ring of slots. A flag in a slot says whether it holds an element.
#[derive(Debug)]
pub(super) struct Slots {
    file: Arc<File>,
    offset: u64,
    element_size: usize,
    /// Where an element has its flags.
    flags: usize,
    count: u32,
}

impl Slots {
    /// A send queue for so many requests, or more.
    pub(super) fn sends(memory: &mut RingMemory, entries: u32) -> io::Result<Self> {
        Self::allocate(
            memory,
            entries,
            (size_of::<Sqe>(), offset_of!(Sqe, flags)),
            0,
        )
    }

    /// A receive queue for so many requests, or more; without memory for none.
    pub(super) fn receives(memory: &mut RingMemory, entries: u32) -> io::Result<Self> {
        let (element_size, flags) = (size_of::<Rqe>(), offset_of!(Rqe, flags));
        if entries > 0 {
            return Self::allocate(memory, entries, (element_size, flags), 0);
        }
        Ok(Self {
            file: Arc::clone(memory.file()),
            // The kernel leaves that of its response zero.
            offset: 0,
            element_size,
            flags,
            count: 0,
        })
    }

    fn allocate(
        memory: &mut RingMemory,
        entries: u32,
        (element_size, flags): (usize, usize),
        behind: usize,
    ) -> io::Result<Self> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let count = entries.checked_next_power_of_two().ok_or_else(invalid)?;
        let size = usize::try_from(count).ok();
        let size = size.and_then(|count| count.checked_mul(element_size)?.checked_add(behind));
        let offset = memory.allocate(size.ok_or_else(invalid)? as u64)?;
        Ok(Self {
            file: Arc::clone(memory.file()),
            offset,
            element_size,
            flags,
            count,
        })
    }

    /// How many elements it holds, a power of two or 0.
    pub(super) fn capacity(&self) -> u32 {
        self.count
    }

    /// Where the program maps it.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The element of this number, if the program has posted it.
    pub(super) fn posted(&self, number: u32) -> Option<Vec<u8>> {
        let mut bytes = vec![0; self.element_size];
        self.file
            .read_exact_at(&mut bytes, self.slot_offset(number, 0))
            .ok()?;
        let (flags, _) = WqeFlags::read_from_prefix(bytes.get(self.flags..)?).ok()?;
        flags.contains(WqeFlags::VALID).then_some(bytes)
    }

    /// Gives the slot of this element back to the program.
    pub(super) fn release(&self, number: u32) {
        let offset = self.slot_offset(number, self.flags);
        // The file is as long as the ring until it is dropped.
        let _ = self.file.write_all_at(WqeFlags::empty().as_bytes(), offset);
    }

    fn slot_offset(&self, number: u32, at: usize) -> u64 {
        let slot = u64::from(number & (self.count - 1));
        self.offset + slot * self.element_size as u64 + at as u64
    }
}

/// A completion queue. The program asks for events in a word after the slots.
#[derive(Debug)]
pub(super) struct CompletionSlots {
    slots: Slots,
    next: u32,
}

impl CompletionSlots {
    /// One for so many completions, or more.
    pub(super) fn new(memory: &mut RingMemory, entries: u32) -> io::Result<Self> {
        let element = (size_of::<Cqe>(), offset_of!(Cqe, flags));
        let slots = Slots::allocate(memory, entries, element, size_of::<CqControl>())?;
        Ok(Self { slots, next: 0 })
    }

    pub(super) fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Adds a completion; `false` if there is no room.
    pub(super) fn push(&mut self, element: &Cqe) -> bool {
        const FLAGS: usize = offset_of!(Cqe, flags);
        let offset = self.slots.slot_offset(self.next, 0);
        let at_flags = self.slots.slot_offset(self.next, FLAGS);
        let mut flags = [0; size_of::<CqeFlags>()];
        let file = &self.slots.file;
        let read = file.read_exact_at(&mut flags, at_flags);
        let is_taken = CqeFlags::from_bits_retain(u8::from_ne_bytes(flags));
        if read.is_err() || is_taken.contains(CqeFlags::VALID) {
            return false;
        }
        // The flags are written last: they hand the slot to the program.
        let hidden = Cqe {
            flags: CqeFlags::empty(),
            ..*element
        };
        let shown = element.flags | CqeFlags::VALID;
        let _ = file.write_all_at(hidden.as_bytes(), offset);
        let _ = file.write_all_at(shown.as_bytes(), at_flags);
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Whether the program has asked for an event of this completion, which it then does no
    /// longer (`siw_cq_event`).
    pub(super) fn take_armed(&self, is_solicited: bool) -> bool {
        let mut word = [0; size_of::<NotifyFlags>()];
        let behind = self.slots.offset + u64::from(self.slots.count) * size_of::<Cqe>() as u64;
        let offset = behind + offset_of!(CqControl, flags) as u64;
        let file = &self.slots.file;
        if file.read_exact_at(&mut word, offset).is_err() {
            return false;
        }
        let flags = NotifyFlags::from_bits_retain(u32::from_ne_bytes(word));
        let is_reported = flags.contains(NotifyFlags::NEXT_COMPLETION)
            || is_solicited && flags.contains(NotifyFlags::SOLICITED);
        if is_reported {
            let _ = file.write_all_at(NotifyFlags::empty().as_bytes(), offset);
        }
        is_reported
    }
}
