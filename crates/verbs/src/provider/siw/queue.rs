//! What siw's send and receive queues are: slots, and a flag in each.

use std::marker::PhantomData;
use std::mem::offset_of;

use rdmacm_abi::uverbs::Sge as AbiSge;
use rdmacm_abi::uverbs::siw::{Rqe, Sqe, WqeFlags};
use zerocopy::{Immutable, IntoBytes};

use crate::error::Result;
use crate::operation::Operation;
use crate::provider::{Slots, Uverbs, nonsense};

/// What stands in a slot.
pub(super) trait Element: IntoBytes + Immutable {
    /// Where its flags are.
    const FLAGS_AT: usize;
}

impl Element for Sqe {
    const FLAGS_AT: usize = offset_of!(Self, flags);
}

impl Element for Rqe {
    const FLAGS_AT: usize = offset_of!(Self, flags);
}

/// A queue of requests. A flag in each slot says whose turn it is; both sides go
/// round in order, each with an index of its own.
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
        let length = length.ok_or_else(|| nonsense(operation))?;
        let mapping = uverbs.map(offset, length)?;
        let slots = Slots::new(mapping, size_of::<T>(), entries);
        Ok(Self {
            slots: slots.ok_or_else(|| nonsense(operation))?,
            next: 0,
            element: PhantomData,
        })
    }

    pub(super) fn capacity(&self) -> u32 {
        self.slots.count()
    }

    /// Whether the driver has freed the slot that is so many behind the next.
    pub(super) fn is_free(&self, behind: u32) -> bool {
        let at = self.next.wrapping_add(behind);
        let flags = self.slots.load_half_word(at, T::FLAGS_AT);
        let flags = WqeFlags::from_bits_retain(flags);
        !flags.contains(WqeFlags::VALID)
    }

    /// Fills the next slot and makes it the driver's.
    pub(super) fn push(&mut self, element: &T, flags: WqeFlags) {
        let behind = T::FLAGS_AT + size_of::<WqeFlags>();
        // All but the flags, which make the slot the driver's.
        let bytes = element.as_bytes();
        if let (Some(head), Some(tail)) = (bytes.get(..T::FLAGS_AT), bytes.get(behind..)) {
            self.slots.write(self.next, 0, head);
            self.slots.write(self.next, behind, tail);
        }
        let flags = (flags | WqeFlags::VALID).bits();
        self.slots.store_half_word(self.next, T::FLAGS_AT, flags);
        self.next = self.next.wrapping_add(1);
    }
}

/// One of siw's limits.
pub(super) fn most(limit: usize) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX)
}

/// Copies pieces and gives their number. Empty ones are left out: siw does not
/// survive one among others that are not (`siw_tx_hdt`).
pub(super) fn copy(from: &[AbiSge], to: &mut [AbiSge]) -> u8 {
    let mut count = 0;
    let filled = from.iter().filter(|sge| sge.length > 0);
    for (to, from) in to.iter_mut().zip(filled) {
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
    fn empty_pieces_stay_out() {
        let mut to = [sge(0, 0); 3];
        let from = [sge(1, 0), sge(2, 5), sge(3, 0), sge(4, 6)];
        assert_eq!(copy(&from, &mut to), 2);
        assert_eq!(to, [sge(2, 5), sge(4, 6), sge(0, 0)]);
    }
}
