//! Send queues that this process shares with a device.

use rdmacm_abi::uverbs::{SendFlags, Sge as AbiSge};

use super::{of_driver, rxe, siw};
use crate::request::SendOperation;

/// A send queue in memory shared with the device.
pub(crate) trait SendRing {
    /// How many requests it holds.
    fn capacity(&self) -> u32;

    /// How many bytes of inline data fit into a request.
    fn max_inline(&self) -> u32;

    /// How many scatter/gather entries fit into a request.
    fn max_sges(&self) -> u32;

    /// Whether there is space for this many more requests.
    #[cfg(test)]
    fn has_room(&self, requests: usize) -> bool {
        self.room(requests) >= requests
    }

    /// How many more requests there is space for, at least. Looks for space for this many
    /// requests, and may find more. The device frees space on its own.
    fn room(&self, requests: usize) -> usize;

    /// Adds a SEND of one scatter/gather entry and without a destination, as
    /// [`push`](Self::push), after it has called `first`.
    fn push_send(&mut self, number: u64, flags: SendFlags, sge: AbiSge, first: impl FnOnce()) {
        first();
        self.push(&SendSlot {
            number,
            operation: &SendOperation::Send,
            flags,
            payload: SlotPayload::SgList(&[sge]),
            destination: None,
        });
    }

    /// Adds a request, which the device processes after the doorbell. The caller has checked
    /// that there is space for it and that it has no more scatter/gather entries than
    /// the queue pair allows.
    fn push(&mut self, request: &SendSlot<'_>);

    /// Adds a request with inline data and without a destination, as [`push`](Self::push).
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each request")]
    fn push_inline(
        &mut self,
        number: u64,
        operation: &SendOperation,
        flags: SendFlags,
        bytes: &[u8],
    ) {
        self.push(&SendSlot {
            number,
            operation,
            flags,
            payload: SlotPayload::Inline(bytes),
            destination: None,
        });
    }
}

/// The send queue of one of the drivers.
#[derive(Debug)]
pub(crate) enum SendRings {
    /// Of rxe.
    Rxe(rxe::SendQueue),
    /// Of siw.
    Siw(siw::SendQueue),
    /// Of the tests.
    #[cfg(test)]
    Stub(super::stub::Ring),
}

impl SendRing for SendRings {
    fn capacity(&self) -> u32 {
        of_driver!(self, ring => ring.capacity())
    }

    fn max_inline(&self) -> u32 {
        of_driver!(self, ring => ring.max_inline())
    }

    fn max_sges(&self) -> u32 {
        of_driver!(self, ring => ring.max_sges())
    }

    fn room(&self, requests: usize) -> usize {
        of_driver!(self, ring => ring.room(requests))
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each request")]
    fn push_send(&mut self, number: u64, flags: SendFlags, sge: AbiSge, first: impl FnOnce()) {
        of_driver!(self, ring => ring.push_send(number, flags, sge, first));
    }

    // The drivers' own are compiled into each caller.
    #[inline(never)]
    fn push(&mut self, request: &SendSlot<'_>) {
        of_driver!(self, ring => ring.push(request));
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each request")]
    fn push_inline(
        &mut self,
        number: u64,
        operation: &SendOperation,
        flags: SendFlags,
        bytes: &[u8],
    ) {
        of_driver!(self, ring => ring.push_inline(number, operation, flags, bytes));
    }
}

/// A request in the form in which it is added to a send queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendSlot<'a> {
    /// The number that its completion reports.
    pub(crate) number: u64,
    /// The operation.
    pub(crate) operation: &'a SendOperation,
    /// Whether it reports its completion, solicits an event at the peer, and waits for earlier
    /// reads and atomics.
    pub(crate) flags: SendFlags,
    /// The memory.
    pub(crate) payload: SlotPayload<'a>,
    /// The receiver, on an unreliable datagram queue pair.
    pub(crate) destination: Option<UdDestination>,
}

/// The memory of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SlotPayload<'a> {
    /// Registered memory, for the device to read or write.
    SgList(&'a [AbiSge]),
    /// Bytes to copy into the queue.
    Inline(&'a [u8]),
}

/// The receiver of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UdDestination {
    /// The driver's number of the address handle.
    pub(crate) address_handle: u32,
    /// The peer's queue pair, 24 bits.
    pub(crate) qp_number: u32,
    /// Its queue key.
    pub(crate) qkey: u32,
}
