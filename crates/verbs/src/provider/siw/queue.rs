//! A send or receive queue in memory shared with siw.

use std::mem::offset_of;

use rdmacm_abi::uverbs::Sge as AbiSge;
use rdmacm_abi::uverbs::siw::{MAX_SGE, Rqe, Sqe, WqeFlags};
use zerocopy::{Immutable, IntoBytes};

use crate::error::Result;
use crate::operation::Operation;
use crate::provider::{AfterClose, Content, Slot, Slots, ThisProcess, Uverbs, invalid_queue};

/// A request in a slot.
pub(crate) trait Element: IntoBytes + Immutable + Content<FilledBy = ThisProcess> {
    /// The offset of its flags.
    const FLAGS_OFFSET: usize;
    /// The offset of its scatter/gather entries.
    const SGES_OFFSET: usize;
}

impl Content for Sqe {
    type FilledBy = ThisProcess;
}

impl Content for Rqe {
    type FilledBy = ThisProcess;
}

impl Element for Sqe {
    const FLAGS_OFFSET: usize = offset_of!(Self, flags);
    const SGES_OFFSET: usize = offset_of!(Self, sges);
}

impl Element for Rqe {
    const FLAGS_OFFSET: usize = offset_of!(Self, flags);
    const SGES_OFFSET: usize = offset_of!(Self, sges);
}

/// A ring of slots with one request each. A flag in a slot says whether the driver owns it.
/// Both sides use the slots in order, each with an index of its own.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    slots: Slots<T>,
    pub(super) next: u32,
}

impl<T: Element> Queue<T> {
    pub(super) fn map(
        uverbs: &Uverbs,
        operation: Operation,
        offset: u64,
        entries: u32,
    ) -> Result<Self> {
        let length = size_of::<T>().checked_mul(entries as usize);
        let length = length.ok_or_else(|| invalid_queue(operation))?;
        let mapping = uverbs.map(offset, length, AfterClose::Zeros)?;
        let slots = Slots::new(mapping, size_of::<T>(), entries);
        Ok(Self {
            slots: slots.ok_or_else(|| invalid_queue(operation))?,
            next: 0,
        })
    }

    /// How many requests it holds.
    pub(super) fn max_entries(&self) -> u32 {
        self.slots.count()
    }

    /// Whether the driver has freed the slot `ahead` slots after the next one.
    #[inline]
    fn is_free(&self, ahead: u32) -> bool {
        let slot = self.next.wrapping_add(ahead);
        let flags = self.slots.slot(slot).load_half_word(T::FLAGS_OFFSET);
        let flags = WqeFlags::from_bits_retain(flags);
        !flags.contains(WqeFlags::VALID)
    }

    /// The next slot.
    #[inline]
    pub(super) fn slot(&self) -> Slot<'_, T> {
        self.slots.slot(self.next)
    }

    /// Writes bytes of the next slot.
    pub(super) fn put_bytes(&self, offset: usize, bytes: &[u8]) {
        self.slots.write(self.next, offset, bytes);
    }

    /// Writes scatter/gather entries to the next slot, and returns their number. Skips empty
    /// entries: an empty one among others crashes siw (`siw_tx_hdt`). Entries after the last
    /// one keep what was there. The driver uses none of them, but for the first one of a read,
    /// which the caller must write if there is none.
    #[inline]
    pub(super) fn put_sges(&self, sg_list: &[AbiSge]) -> u8 {
        let mut count = 0;
        let mut offset = T::SGES_OFFSET;
        let slot = self.slot();
        for sge in sg_list.iter().filter(|sge| sge.length > 0).take(MAX_SGE) {
            slot.put(offset, sge);
            offset += size_of::<AbiSge>();
            count += 1;
        }
        count
    }

    /// Hands the next slot to the driver.
    #[inline]
    pub(super) fn hand_over(&mut self, flags: WqeFlags) {
        // The flags are written last: they hand the slot to the driver.
        let flags = (flags | WqeFlags::VALID).bits();
        self.slot().store_half_word(T::FLAGS_OFFSET, flags);
        self.next = self.next.wrapping_add(1);
    }
}

/// How many slots ahead are looked at first.
const AHEAD: [usize; 2] = [32, 8];

impl<T: Element> Queue<T> {
    /// How many slots are free, at least `requests` if they are: 0 otherwise.
    pub(super) fn free_ahead(&self, requests: usize) -> usize {
        let is_free = |count: &usize| self.are_free(*count);
        let ahead = AHEAD.map(|ahead| requests.max(ahead));
        let mut counts = ahead.into_iter().chain([requests]);
        counts.find(is_free).unwrap_or(0)
    }

    fn are_free(&self, requests: usize) -> bool {
        let Some(last) = u32::try_from(requests).ok().and_then(|n| n.checked_sub(1)) else {
            return requests == 0;
        };
        // Slots become free in order.
        last < self.max_entries() && self.is_free(last)
    }
}

/// One of siw's limits, as a `u32`.
pub(super) fn limit(limit: usize) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX)
}
