//! siw's receive queues, shared or not.

use rdmacm_abi::uverbs::Sge as AbiSge;
use rdmacm_abi::uverbs::siw::{MAX_SGE, Rqe, WqeFlags};
use zerocopy::FromZeros;

use super::queue::{Queue, copy_sges, limit};
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
        let mut element = Rqe::new_zeroed();
        element.id = number;
        element.sge_count = copy_sges(sg_list, &mut element.sges);
        self.push_element(&element, WqeFlags::empty());
    }
}
