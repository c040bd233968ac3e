//! rxe's send queues.

use std::mem::offset_of;

use rdmacm_abi::Be32;
use rdmacm_abi::Reserved;
use rdmacm_abi::uverbs::rxe::{AtomicTarget, DatagramTarget, DmaInfo, RdmaTarget, SendWqe, SendWr};
use rdmacm_abi::uverbs::{ImmediateOrKey, SendFlags, Sge as AbiSge, WrOpcode};

use super::Queue;
use super::queue::Element;
use crate::provider::{SendRing, SendSlot, Slot, SlotPayload};
use crate::request::SendOperation;

/// A slot holds a [`SendWqe`], followed by its scatter/gather entries or inline bytes.
impl SendRing for Queue<SendWqe> {
    fn capacity(&self) -> u32 {
        self.max_entries()
    }

    fn max_inline(&self) -> u32 {
        self.max_tail()
    }

    fn max_sges(&self) -> u32 {
        self.max_slot_sges()
    }

    fn room(&self, _: usize) -> usize {
        self.free_slots() as usize
    }

    #[inline]
    fn push_send(&mut self, number: u64, flags: SendFlags, sge: AbiSge, first: impl FnOnce()) {
        let slot = self.next_slot();
        // A SEND has no target: see `put_target`.
        slot.put(WR + offset_of!(SendWr, id), &number);
        slot.put(WR + offset_of!(SendWr, reserved), &0_u32);
        slot.put(WR + offset_of!(SendWr, opcode), &WrOpcode::SEND);
        slot.put(WR + offset_of!(SendWr, flags), &flags);
        slot.put(WR + offset_of!(SendWr, immediate_or_key), &0_u32);
        slot.put(STATUS, &[0_u8; DMA - STATUS]);
        slot.put(DMA, &DmaInfo::new(sge.length, 1));
        slot.put(size_of::<SendWqe>(), &sge);
        first();
        self.produce();
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each request")]
    fn push(&mut self, request: &SendSlot<'_>) {
        let mut flags = request.flags;
        let dma = match request.payload {
            SlotPayload::SgList(sg_list) => {
                self.put_sges(sg_list);
                let length = sg_list.iter().map(|sge| sge.length).sum();
                // As many as fit into a slot.
                DmaInfo::new(length, u32::try_from(sg_list.len()).unwrap_or(u32::MAX))
            }
            SlotPayload::Inline(bytes) => {
                self.put_inline(bytes);
                flags |= SendFlags::INLINE;
                DmaInfo::new(u32::try_from(bytes.len()).unwrap_or(u32::MAX), 0)
            }
        };
        let operation = request.operation;
        let slot = self.next_slot();
        slot.put(WR + offset_of!(SendWr, id), &request.number);
        slot.put(WR + offset_of!(SendWr, reserved), &0_u32);
        slot.put(WR + offset_of!(SendWr, opcode), &operation.opcode());
        slot.put(WR + offset_of!(SendWr, flags), &flags);
        let immediate_or_key = immediate_or_key(operation);
        slot.put(WR + offset_of!(SendWr, immediate_or_key), &immediate_or_key);
        let iova = put_target(&slot, request);
        slot.put(STATUS, &[0_u8; IOVA - STATUS]);
        slot.put(IOVA, &iova);
        slot.put(MASK, &[0_u8; DMA - MASK]);
        slot.put(DMA, &dma);
        self.produce();
    }
}

const WR: usize = offset_of!(SendWqe, wr);
/// The driver's fields, around the address in the peer's memory.
const STATUS: usize = offset_of!(SendWqe, status);
const IOVA: usize = offset_of!(SendWqe, iova);
const MASK: usize = offset_of!(SendWqe, mask);
const DMA: usize = offset_of!(SendWqe, dma);

/// Writes where the request goes. Returns the address in the peer's memory, or 0. The driver does
/// not look at what is left of the target of an earlier request.
#[inline]
fn put_target(slot: &Slot<'_, <SendWqe as Element>::Whole>, request: &SendSlot<'_>) -> u64 {
    const TARGET: usize = WR + offset_of!(SendWr, target);
    if let Some(destination) = request.destination {
        let target = DatagramTarget {
            remote_qp_number: destination.qp_number,
            remote_qkey: destination.qkey,
            ah_number: destination.address_handle,
            ..DatagramTarget::default()
        };
        slot.put(TARGET, &target);
        return 0;
    }
    let Some(remote) = request.operation.remote() else {
        return 0;
    };
    let put_atomic = |compare_add, swap| {
        let target = AtomicTarget {
            remote_address: remote.address(),
            compare_add,
            swap,
            rkey: remote.key(),
            reserved: Reserved::ZERO,
        };
        slot.put(TARGET, &target);
    };
    match *request.operation {
        SendOperation::CompareSwap { compare, swap, .. } => put_atomic(compare, swap),
        SendOperation::FetchAdd { add, .. } => put_atomic(add, 0),
        _ => {
            let target = RdmaTarget {
                remote_address: remote.address(),
                rkey: remote.key(),
                reserved: Reserved::ZERO,
            };
            slot.put(TARGET, &target);
        }
    }
    remote.address()
}

#[inline]
fn immediate_or_key(operation: &SendOperation) -> ImmediateOrKey {
    match *operation {
        SendOperation::SendWithImmediate(data) | SendOperation::WriteWithImmediate(_, data) => {
            ImmediateOrKey::from_immediate(Be32::new(data))
        }
        SendOperation::SendWithInvalidate(key) => ImmediateOrKey::from_key(key),
        _ => ImmediateOrKey::NONE,
    }
}
