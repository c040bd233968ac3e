//! rxe's receive queues, shared or not.

use rdmacm_abi::uverbs::Sge as AbiSge;
use rdmacm_abi::uverbs::rxe::{DmaInfo, MapInfo, RecvWqe};
use zerocopy::IntoBytes;

use super::Queue;
use super::sends::behind;
use crate::error::Result;
use crate::operation::Operation;
use crate::provider::{ReceiveRing, Uverbs};

/// A receive queue: slots hold a [`RecvWqe`] and behind it the pieces.
#[derive(Debug)]
pub(super) struct Receives(Queue);

impl Receives {
    pub(super) fn map(uverbs: &Uverbs, operation: Operation, info: MapInfo) -> Result<Self> {
        let queue = super::map(uverbs, operation, info)?;
        super::holds::<RecvWqe>(&queue, operation)?;
        Ok(Self(queue))
    }
}

impl ReceiveRing for Receives {
    fn capacity(&self) -> u32 {
        self.0.capacity()
    }

    fn max_sges(&self) -> u32 {
        behind(&self.0, size_of::<RecvWqe>()) / 16
    }

    fn has_room(&self) -> bool {
        self.0.free_slots() > 0
    }

    fn push(&mut self, number: u64, sg_list: &[AbiSge]) {
        let slot = self.0.next_free();
        let length = sg_list.iter().map(|sge| sge.length).sum();
        // As many as fit into a slot.
        let count = u32::try_from(sg_list.len()).unwrap_or(u32::MAX);
        let element = RecvWqe {
            id: number,
            dma: DmaInfo::new(length, count),
            ..RecvWqe::default()
        };
        let slots = self.0.slots();
        slots.write(slot, 0, element.as_bytes());
        slots.write(slot, size_of::<RecvWqe>(), sg_list.as_bytes());
        self.0.produce();
    }
}
