//! siw's receive queues, shared or not.

use rdmacm_abi::uverbs::Sge as AbiSge;
use rdmacm_abi::uverbs::siw::{MAX_SGE, Rqe, WqeFlags};
use zerocopy::FromZeros;

use super::queue::{Queue, copy, most};
use crate::error::Result;
use crate::operation::Operation;
use crate::provider::{ReceiveRing, Uverbs};

/// A receive queue.
#[derive(Debug)]
pub(super) struct Receives(pub(super) Queue<Rqe>);

impl Receives {
    pub(super) fn map(
        uverbs: &Uverbs,
        operation: Operation,
        offset: u64,
        entries: u32,
    ) -> Result<Self> {
        Queue::map(uverbs, operation, offset, entries).map(Self)
    }
}

impl ReceiveRing for Receives {
    fn capacity(&self) -> u32 {
        self.0.capacity()
    }

    fn max_sges(&self) -> u32 {
        most(MAX_SGE)
    }

    fn has_room(&self) -> bool {
        // The driver frees a slot before it reports what came.
        self.0.is_free(0)
    }

    fn push(&mut self, number: u64, sg_list: &[AbiSge]) {
        let mut element = Rqe::new_zeroed();
        element.id = number;
        element.sge_count = copy(sg_list, &mut element.sges);
        self.0.push(&element, WqeFlags::empty());
    }
}
