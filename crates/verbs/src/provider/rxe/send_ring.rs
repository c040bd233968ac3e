//! rxe's send queues.

use rdmacm_abi::Be32;
use rdmacm_abi::Reserved;
use rdmacm_abi::uverbs::rxe::{
    AtomicTarget, DatagramTarget, DmaInfo, RdmaTarget, SendWqe, SendWr, Target,
};
use rdmacm_abi::uverbs::{ImmediateOrKey, SendFlags};
use zerocopy::IntoBytes;

use super::Queue;
use crate::memory::RemoteMemory;
use crate::provider::{SendRing, SendSlot, SlotPayload};
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

    fn push(&mut self, request: &SendSlot<'_>) {
        let slot = self.next_free();
        let (dma, tail) = match request.payload {
            SlotPayload::SgList(sg_list) => {
                let length = sg_list.iter().map(|sge| sge.length).sum();
                // As many as fit into a slot.
                let count = u32::try_from(sg_list.len()).unwrap_or(u32::MAX);
                (DmaInfo::new(length, count), sg_list.as_bytes())
            }
            SlotPayload::Inline(bytes) => {
                let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                (DmaInfo::new(length, 0), bytes)
            }
        };
        self.write(slot, &element(request, dma), tail);
        self.produce();
    }
}

fn element(request: &SendSlot<'_>, dma: DmaInfo) -> SendWqe {
    let mut flags = SendFlags::empty();
    flags.set(SendFlags::SIGNALED, request.signaled);
    flags.set(SendFlags::SOLICITED, request.solicited);
    flags.set(SendFlags::FENCE, request.fence);
    let inline = matches!(request.payload, SlotPayload::Inline(_));
    flags.set(SendFlags::INLINE, inline);
    let wr = SendWr {
        id: request.number,
        reserved: Reserved::ZERO,
        opcode: request.operation.opcode(),
        flags,
        immediate_or_key: immediate_or_key(&request.operation),
        target: target(request),
    };
    let remote = request.operation.remote();
    SendWqe::new(wr, remote.map_or(0, |remote| remote.address()), dma)
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

fn target(request: &SendSlot<'_>) -> Target {
    let atomic = |remote: RemoteMemory, compare_add, swap| {
        Target::from_atomic(&AtomicTarget {
            remote_address: remote.address(),
            compare_add,
            swap,
            rkey: remote.key(),
            reserved: Reserved::ZERO,
        })
    };
    match request.operation {
        SendOperation::CompareSwap {
            remote,
            compare,
            swap,
        } => atomic(remote, compare, swap),
        SendOperation::FetchAdd { remote, add } => atomic(remote, add, 0),
        operation => match (operation.remote(), request.destination) {
            (Some(remote), _) => Target::from_rdma(&RdmaTarget {
                remote_address: remote.address(),
                rkey: remote.key(),
                reserved: Reserved::ZERO,
            }),
            (None, Some(destination)) => Target::from_datagram(&DatagramTarget {
                remote_qp_number: destination.queue_pair,
                remote_qkey: destination.queue_key,
                ah_number: destination.address_handle,
                ..DatagramTarget::default()
            }),
            (None, None) => Target::NONE,
        },
    }
}
