//! siw's receive queues, shared or not.

use std::mem::offset_of;
use std::sync::atomic::Ordering;

use rdmacm_abi::uverbs::Sge;
use rdmacm_abi::uverbs::siw::{MAX_SGE, Rqe, WqeFlags};
use zerocopy::{FromZeros, IntoBytes};

use super::sends::{copy, most, slots};
use crate::error::Result;
use crate::operation::Operation;
use crate::provider::{ReceiveRing, Slots, Uverbs};

/// A receive queue: as [`Sends`](super::Sends).
#[derive(Debug)]
pub(super) struct Receives {
    slots: Slots,
    pub(super) next: u32,
}

impl Receives {
    pub(super) fn map(
        uverbs: &Uverbs,
        operation: Operation,
        offset: u64,
        entries: u32,
    ) -> Result<Self> {
        Ok(Self {
            slots: slots::<Rqe>(uverbs, operation, offset, entries)?,
            next: 0,
        })
    }
}

impl ReceiveRing for Receives {
    fn capacity(&self) -> u32 {
        self.slots.count()
    }

    fn max_pieces(&self) -> u32 {
        most(MAX_SGE)
    }

    fn has_room(&self) -> bool {
        let flags = self.slots.half_word(self.next, offset_of!(Rqe, flags));
        let flags = WqeFlags::from_bits_retain(flags.load(Ordering::Acquire));
        // The driver frees a slot before it reports what came.
        !flags.contains(WqeFlags::VALID)
    }

    fn push(&mut self, number: u64, pieces: &[Sge]) {
        let mut element = Rqe::new_zeroed();
        element.id = number;
        element.sge_count = copy(pieces, &mut element.sges);
        let flags_at = offset_of!(Rqe, flags);
        // All but the flags, which make the slot the driver's.
        let bytes = element.as_bytes();
        let behind = flags_at + size_of::<WqeFlags>();
        if let (Some(head), Some(tail)) = (bytes.get(..flags_at), bytes.get(behind..)) {
            self.slots.write(self.next, 0, head);
            self.slots.write(self.next, behind, tail);
        }
        let turn = self.slots.half_word(self.next, flags_at);
        turn.store(WqeFlags::VALID.bits(), Ordering::Release);
        self.next = self.next.wrapping_add(1);
    }
}
