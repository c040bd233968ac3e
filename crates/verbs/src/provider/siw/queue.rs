//! A send or receive queue in memory shared with siw.

use std::marker::PhantomData;
use std::mem::offset_of;

use rdmacm_abi::uverbs::Sge as AbiSge;
use rdmacm_abi::uverbs::siw::{Rqe, Sqe, WqeFlags};
use zerocopy::{Immutable, IntoBytes};

use crate::error::Result;
use crate::operation::Operation;
use crate::provider::{Slots, Uverbs, invalid_queue};

/// A request in a slot.
pub(super) trait Element: IntoBytes + Immutable {
    /// The offset of its flags.
    const FLAGS_OFFSET: usize;
}

impl Element for Sqe {
    const FLAGS_OFFSET: usize = offset_of!(Self, flags);
}

impl Element for Rqe {
    const FLAGS_OFFSET: usize = offset_of!(Self, flags);
}

/// A ring of slots with one request each. A flag in a slot says whether the driver owns it.
/// Both sides use the slots in order, each with an index of its own.
#[derive(Debug)]
pub(super) struct Queue<T> {
    slots: Slots,
    pub(super) next: u32,
    element: PhantomData<T>,
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
        let mapping = uverbs.map(offset, length)?;
        let slots = Slots::new(mapping, size_of::<T>(), entries);
        Ok(Self {
            slots: slots.ok_or_else(|| invalid_queue(operation))?,
            next: 0,
            element: PhantomData,
        })
    }

    /// How many requests it holds.
    pub(super) fn max_entries(&self) -> u32 {
        self.slots.count()
    }

    /// Whether the driver has freed the slot `ahead` slots after the next one.
    pub(super) fn is_free(&self, ahead: u32) -> bool {
        let slot = self.next.wrapping_add(ahead);
        let flags = self.slots.load_half_word(slot, T::FLAGS_OFFSET);
        let flags = WqeFlags::from_bits_retain(flags);
        !flags.contains(WqeFlags::VALID)
    }

    /// Fills the next slot and hands it to the driver.
    pub(super) fn push_element(&mut self, element: &T, flags: WqeFlags) {
        let tail_offset = T::FLAGS_OFFSET + size_of::<WqeFlags>();
        // The flags are written last: they hand the slot to the driver.
        let bytes = element.as_bytes();
        if let (Some(head), Some(tail)) = (bytes.get(..T::FLAGS_OFFSET), bytes.get(tail_offset..)) {
            self.slots.write(self.next, 0, head);
            self.slots.write(self.next, tail_offset, tail);
        }
        let flags = (flags | WqeFlags::VALID).bits();
        self.slots
            .store_half_word(self.next, T::FLAGS_OFFSET, flags);
        self.next = self.next.wrapping_add(1);
    }
}

/// One of siw's limits, as a `u32`.
pub(super) fn limit(limit: usize) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX)
}

/// Copies scatter/gather entries and returns their number. Skips empty entries: an empty
/// one among others crashes siw (`siw_tx_hdt`).
pub(super) fn copy_sges(from: &[AbiSge], to: &mut [AbiSge]) -> u8 {
    let mut count = 0;
    let non_empty = from.iter().filter(|sge| sge.length > 0);
    for (to, from) in to.iter_mut().zip(non_empty) {
        *to = *from;
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sge(address: u64, length: u32) -> AbiSge {
        AbiSge {
            address,
            length,
            lkey: 7,
        }
    }

    #[test]
    fn empty_entries_are_skipped() {
        let mut to = [sge(0, 0); 3];
        let from = [sge(1, 0), sge(2, 5), sge(3, 0), sge(4, 6)];
        assert_eq!(copy_sges(&from, &mut to), 2);
        assert_eq!(to, [sge(2, 5), sge(4, 6), sge(0, 0)]);
    }
}
