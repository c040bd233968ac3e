//! rxe's receive queues, shared or not.

use rdmacm_abi::uverbs::Sge as AbiSge;
use rdmacm_abi::uverbs::rxe::{DmaInfo, RecvWqe};

use super::Queue;
use crate::provider::ReceiveRing;

/// A slot holds a [`RecvWqe`], followed by its scatter/gather entries.
impl ReceiveRing for Queue<RecvWqe> {
    fn capacity(&self) -> u32 {
        self.max_entries()
    }

    fn max_sges(&self) -> u32 {
        self.max_slot_sges()
    }

    fn room(&self, _: usize) -> usize {
        self.free_slots() as usize
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each request")]
    fn push_one(&mut self, number: u64, sge: AbiSge, first: impl FnOnce()) {
        self.put_one(&element(number, sge.length, 1), &sge);
        first();
        self.produce();
    }

    #[inline]
    fn push_empty(&mut self, number: u64) {
        self.put_element(&element(number, 0, 0));
        self.produce();
    }

    fn push(&mut self, number: u64, sg_list: &[AbiSge]) {
        let length = sg_list.iter().map(|sge| sge.length).sum();
        // As many as fit into a slot.
        let count = u32::try_from(sg_list.len()).unwrap_or(u32::MAX);
        self.put_element(&element(number, length, count));
        self.put_sges(sg_list);
        self.produce();
    }
}

#[inline]
fn element(number: u64, length: u32, count: u32) -> RecvWqe {
    RecvWqe {
        id: number,
        dma: DmaInfo::new(length, count),
        ..RecvWqe::default()
    }
}
