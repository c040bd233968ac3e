//! Receive queues that this process shares with a device.

use rdmacm_abi::uverbs::Sge as AbiSge;

use super::{of_driver, rxe, siw};

/// A receive queue in memory shared with the device.
pub(crate) trait ReceiveRing {
    /// How many requests it holds.
    fn capacity(&self) -> u32;

    /// How many scatter/gather entries fit into a request.
    fn max_sges(&self) -> u32;

    /// Whether there is space for one more request. The device frees space on its own.
    fn has_room(&self) -> bool {
        self.room(1) > 0
    }

    /// How many more requests there is space for, at least. Looks for space for this many
    /// requests, and may find more.
    fn room(&self, requests: usize) -> usize;

    /// Adds a request of one scatter/gather entry, as [`push`](Self::push), after it has called
    /// `first`.
    fn push_one(&mut self, number: u64, sge: AbiSge, first: impl FnOnce()) {
        first();
        self.push(number, &[sge]);
    }

    /// Adds a request without scatter/gather entries, as [`push`](Self::push).
    fn push_empty(&mut self, number: u64) {
        self.push(number, &[]);
    }

    /// Adds a request, which the device may use at once. The caller has checked that there is
    /// space for it and that it has no more scatter/gather entries than the queue allows.
    fn push(&mut self, number: u64, sg_list: &[AbiSge]);
}

/// The receive queue of one of the drivers.
#[derive(Debug)]
pub(crate) enum ReceiveRings {
    /// Of rxe.
    Rxe(rxe::ReceiveQueue),
    /// Of siw.
    Siw(siw::ReceiveQueue),
    /// Of the tests.
    #[cfg(test)]
    Stub(super::stub::Ring),
}

impl ReceiveRing for ReceiveRings {
    fn capacity(&self) -> u32 {
        of_driver!(self, ring => ring.capacity())
    }

    fn max_sges(&self) -> u32 {
        of_driver!(self, ring => ring.max_sges())
    }

    fn room(&self, requests: usize) -> usize {
        of_driver!(self, ring => ring.room(requests))
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each request")]
    fn push_one(&mut self, number: u64, sge: AbiSge, first: impl FnOnce()) {
        of_driver!(self, ring => ring.push_one(number, sge, first));
    }

    #[inline]
    fn push_empty(&mut self, number: u64) {
        of_driver!(self, ring => ring.push_empty(number));
    }

    fn push(&mut self, number: u64, sg_list: &[AbiSge]) {
        of_driver!(self, ring => ring.push(number, sg_list));
    }
}
