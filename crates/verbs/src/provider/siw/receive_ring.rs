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

    fn has_room(&self) -> bool {
        // The driver frees a slot before it reports the completion.
        self.is_free(0)
    }

    fn push(&mut self, number: u64, sg_list: &[AbiSge]) {
        self.put(offset_of!(Rqe, id), &number);
        let count = self.put_sges(sg_list);
        self.put(offset_of!(Rqe, sge_count), &count);
        self.hand_over(WqeFlags::empty());
    }
}
