//! rxe's send queues.

use std::mem::offset_of;

use rdmacm_abi::Be32;
use rdmacm_abi::Reserved;
use rdmacm_abi::uverbs::rxe::{
    AtomicTarget, DatagramTarget, DmaInfo, RdmaTarget, SendWqe, SendWr, Target,
};
use rdmacm_abi::uverbs::{ImmediateOrKey, SendFlags, Sge as AbiSge, WrOpcode};

use super::Queue;
use crate::provider::{SendRing, SendSlot, SlotOptions, SlotPayload};
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

    fn has_room(&self, requests: usize) -> bool {
        self.free_slots() as usize >= requests
    }

    fn room(&self, _: usize) -> usize {
        self.free_slots() as usize
    }

    #[inline]
    fn push_send(&mut self, number: u64, flags: SendFlags, sge: AbiSge, first: impl FnOnce()) {
        const WR: usize = offset_of!(SendWqe, wr);
        /// The driver's fields.
        const STATUS: usize = offset_of!(SendWqe, status);
        const DMA: usize = offset_of!(SendWqe, dma);
        let slot = self.next_slot();
        // The target of an earlier request may stay: the driver does not look at that of a SEND.
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

    fn push(&mut self, request: &SendSlot<'_>) {
        let slot = self.next_free();
        match request.payload {
            SlotPayload::SgList(sg_list) => {
                let length = sg_list.iter().map(|sge| sge.length).sum();
                // As many as fit into a slot.
                let count = u32::try_from(sg_list.len()).unwrap_or(u32::MAX);
                let dma = DmaInfo::new(length, count);
                self.write(slot, &element(request, dma, SendFlags::empty()), sg_list);
            }
            SlotPayload::Inline(bytes) => {
                let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                let dma = DmaInfo::new(length, 0);
                self.write_inline(slot, &element(request, dma, SendFlags::INLINE), bytes);
            }
        }
        self.produce();
    }
}

#[inline]
fn flags(options: SlotOptions) -> SendFlags {
    let mut flags = SendFlags::empty();
    flags.set(SendFlags::SIGNALED, options.signaled);
    flags.set(SendFlags::SOLICITED, options.solicited);
    flags.set(SendFlags::FENCE, options.fence);
    flags
}

/// A plain SEND.
fn wr(request: &SendSlot<'_>, flags: SendFlags) -> SendWr {
    SendWr {
        id: request.number,
        reserved: Reserved::ZERO,
        opcode: WrOpcode::SEND,
        flags,
        immediate_or_key: ImmediateOrKey::NONE,
        target: Target::NONE,
    }
}

#[inline(never)]
fn element(request: &SendSlot<'_>, dma: DmaInfo, flags: SendFlags) -> SendWqe {
    let mut wr = wr(request, flags | self::flags(request.options));
    if let Some(destination) = request.destination {
        wr.target = Target::from_datagram(&DatagramTarget {
            remote_qp_number: destination.queue_pair,
            remote_qkey: destination.queue_key,
            ah_number: destination.address_handle,
            ..DatagramTarget::default()
        });
    }
    let mut iova = 0;
    if request.operation != &SendOperation::Send {
        iova = operate(&mut wr, request.operation);
    }
    SendWqe::new(wr, iova, dma)
}

/// Fills in what another operation than SEND does, and returns the address in the peer's
/// memory.
fn operate(wr: &mut SendWr, operation: &SendOperation) -> u64 {
    wr.opcode = operation.opcode();
    wr.immediate_or_key = immediate_or_key(operation);
    let Some(remote) = operation.remote() else {
        return 0;
    };
    let atomic = |compare_add, swap| {
        Target::from_atomic(&AtomicTarget {
            remote_address: remote.address(),
            compare_add,
            swap,
            rkey: remote.key(),
            reserved: Reserved::ZERO,
        })
    };
    wr.target = match *operation {
        SendOperation::CompareSwap { compare, swap, .. } => atomic(compare, swap),
        SendOperation::FetchAdd { add, .. } => atomic(add, 0),
        _ => Target::from_rdma(&RdmaTarget {
            remote_address: remote.address(),
            rkey: remote.key(),
            reserved: Reserved::ZERO,
        }),
    };
    remote.address()
}

fn immediate_or_key(operation: &SendOperation) -> ImmediateOrKey {
    match *operation {
        SendOperation::SendWithImmediate(data) | SendOperation::WriteWithImmediate(_, data) => {
            ImmediateOrKey::from_immediate(Be32::new(data))
        }
        SendOperation::SendWithInvalidate(key) => ImmediateOrKey::from_key(key),
        _ => ImmediateOrKey::NONE,
    }
}
