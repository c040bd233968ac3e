//! rxe's send queues.

use rdmacm_abi::Be32;
use rdmacm_abi::Reserved;
use rdmacm_abi::uverbs::rxe::{
    AtomicTarget, DatagramTarget, DmaInfo, MapInfo, RdmaTarget, SendWqe, SendWr, Target,
};
use rdmacm_abi::uverbs::{ImmediateOrKey, SendFlags};
use zerocopy::IntoBytes;

use super::Queue;
use crate::error::Result;
use crate::memory::RemoteMemory;
use crate::operation::Operation;
use crate::provider::{SendRing, SendSlot, SlotPayload, Uverbs};
use crate::request::SendOperation;

/// A send queue: slots hold a [`SendWqe`], and behind it pieces or bytes.
#[derive(Debug)]
pub(super) struct Sends(Queue);

impl Sends {
    pub(super) fn map(uverbs: &Uverbs, operation: Operation, info: MapInfo) -> Result<Self> {
        let queue = super::map(uverbs, operation, info)?;
        super::holds::<SendWqe>(&queue, operation)?;
        Ok(Self(queue))
    }
}

impl SendRing for Sends {
    fn capacity(&self) -> u32 {
        self.0.capacity()
    }

    fn max_inline(&self) -> u32 {
        behind(&self.0, size_of::<SendWqe>())
    }

    fn max_sges(&self) -> u32 {
        behind(&self.0, size_of::<SendWqe>()) / 16
    }

    fn has_room(&self, requests: usize) -> bool {
        self.0.free_slots() as usize >= requests
    }

    fn push(&mut self, request: &SendSlot<'_>) {
        let slot = self.0.next_free();
        let slots = self.0.slots();
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
        slots.write(slot, 0, element(request, dma).as_bytes());
        slots.write(slot, size_of::<SendWqe>(), tail);
        self.0.produce();
    }
}

/// Bytes that a slot has behind its element.
pub(super) fn behind(queue: &Queue, element: usize) -> u32 {
    let rest = queue.slots().stride().saturating_sub(element);
    u32::try_from(rest).unwrap_or(u32::MAX)
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
        immediate_or_key: with_message(&request.operation),
        target: target(request),
    };
    let remote = request.operation.remote();
    SendWqe::new(wr, remote.map_or(0, |remote| remote.address()), dma)
}

fn with_message(operation: &SendOperation) -> ImmediateOrKey {
    match *operation {
        SendOperation::SendWithImmediate(word) | SendOperation::WriteWithImmediate(_, word) => {
            ImmediateOrKey::from_immediate(Be32::new(word))
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
            (None, Some(to)) => Target::from_datagram(&DatagramTarget {
                remote_qp_number: to.queue_pair,
                remote_qkey: to.queue_key,
                ah_number: to.address_handle,
                ..DatagramTarget::default()
            }),
            (None, None) => Target::NONE,
        },
    }
}
