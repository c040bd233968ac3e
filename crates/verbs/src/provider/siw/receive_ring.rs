//! siw's receive queues, shared or not.

use std::mem::offset_of;

use rdmacm_abi::uverbs::Sge as AbiSge;
use rdmacm_abi::uverbs::siw::{MAX_SGE, Rqe, WqeFlags};

use super::queue::{Queue, limit};
use crate::provider::ReceiveRing;

impl ReceiveRing for Queue<Rqe> {
    fn capacity(&self) -> u32 {
        self.max_entries()
    }

    fn max_sges(&self) -> u32 {
        limit(MAX_SGE)
    }

    fn room(&self, requests: usize) -> usize {
        // The driver frees a slot before it reports the completion, but for a flush.
        self.free_ahead(requests)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each request")]
    fn push_one(&mut self, number: u64, sge: AbiSge, first: impl FnOnce()) {
        let slot = self.slot();
        slot.put(offset_of!(Rqe, id), &number);
        // Empty entries are skipped, as in a list.
        slot.put(offset_of!(Rqe, sge_count), &u8::from(sge.length > 0));
        slot.put(offset_of!(Rqe, sges), &sge);
        first();
        self.hand_over(WqeFlags::empty());
    }

    fn push(&mut self, number: u64, sg_list: &[AbiSge]) {
        let count = self.put_sges(sg_list);
        let slot = self.slot();
        slot.put(offset_of!(Rqe, id), &number);
        slot.put(offset_of!(Rqe, sge_count), &count);
        self.hand_over(WqeFlags::empty());
    }
}
