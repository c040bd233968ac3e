//! What stands in a slot of rxe's queues.

use rdmacm_abi::uverbs::rxe::{DatagramTarget, QueueHeader, RdmaTarget, RecvWqe, SendWqe, Target};
use rdmacm_abi::uverbs::{ImmediateOrKey, SendFlags, Sge as AbiSge, WrOpcode};
use rdmacm_abi::{Be32, Reserved};
use rdmacm_core::QpType;

use super::{HEAD, QUEUES, roomy_and_short};
use crate::memory::RemoteMemory;
use crate::provider::ring_memory::ByHand;
use crate::provider::rxe::{Receives, Rxe, Sends};
use crate::provider::{Provider, ReceiveRing, SendRing, SendSlot, SlotPayload, UdDestination};
use crate::request::SendOperation;

fn remote() -> RemoteMemory {
    RemoteMemory::new(0x1000, 64, 0x77).unwrap()
}

fn slot(operation: SendOperation, payload: SlotPayload<'_>) -> SendSlot<'_> {
    SendSlot {
        number: 0x1_0000_0002,
        operation,
        signaled: false,
        solicited: false,
        fence: false,
        payload,
        destination: None,
    }
}

/// What the driver finds, and where.
fn written(request: &SendSlot<'_>) -> (SendWqe, ByHand) {
    let [(ring_memory, place), _] = roomy_and_short(size_of::<SendWqe>() + 32);
    let mut ring = Sends::map(&ring_memory.uverbs, QUEUES, place).unwrap();
    ring.push(request);
    (ring_memory.read(HEAD), ring_memory)
}

const NOTHING: SlotPayload<'static> = SlotPayload::SgList(&[]);

fn sge(address: u64, length: u32) -> AbiSge {
    AbiSge {
        address,
        length,
        lkey: 3,
    }
}

#[test]
fn each_operation_has_its_number_words_and_target() {
    let none = ImmediateOrKey::NONE;
    let immediate = ImmediateOrKey::from_immediate(Be32::new(0x1234));
    let rdma = Target::from_rdma(&RdmaTarget {
        remote_address: 0x1000,
        rkey: 0x77,
        reserved: Reserved::ZERO,
    });
    for (operation, opcode, word, target) in [
        (SendOperation::Send, WrOpcode::SEND, none, Target::NONE),
        (
            SendOperation::SendWithImmediate(0x1234),
            WrOpcode::SEND_WITH_IMM,
            immediate,
            Target::NONE,
        ),
        (
            SendOperation::SendWithInvalidate(0x99),
            WrOpcode::SEND_WITH_INV,
            ImmediateOrKey::from_key(0x99),
            Target::NONE,
        ),
        (
            SendOperation::Write(remote()),
            WrOpcode::RDMA_WRITE,
            none,
            rdma,
        ),
        (
            SendOperation::WriteWithImmediate(remote(), 0x1234),
            WrOpcode::RDMA_WRITE_WITH_IMM,
            immediate,
            rdma,
        ),
        (
            SendOperation::Read(remote()),
            WrOpcode::RDMA_READ,
            none,
            rdma,
        ),
    ] {
        let (element, _) = written(&slot(operation, NOTHING));
        assert_eq!((element.wr.id, element.wr.opcode), (0x1_0000_0002, opcode));
        assert_eq!(element.wr.immediate_or_key, word, "{operation:?}");
        assert_eq!(element.wr.target, target, "{operation:?}");
        let address = operation.remote().map_or(0, |remote| remote.address());
        assert_eq!(element.iova, address);
        assert_eq!(element.wr.flags, SendFlags::empty());
    }
}

#[test]
fn a_datagram_has_its_destination() {
    let request = SendSlot {
        destination: Some(UdDestination {
            address_handle: 5,
            queue_pair: 6,
            queue_key: 7,
        }),
        ..slot(SendOperation::Send, NOTHING)
    };
    let expected = DatagramTarget {
        ah_number: 5,
        remote_qp_number: 6,
        remote_qkey: 7,
        ..DatagramTarget::default()
    };
    let (element, _) = written(&request);
    assert_eq!(element.wr.target, Target::from_datagram(&expected));
}

#[test]
fn each_wish_is_a_flag() {
    let plain = || slot(SendOperation::Send, NOTHING);
    let signaled = SendSlot {
        signaled: true,
        ..plain()
    };
    let solicited = SendSlot {
        solicited: true,
        ..plain()
    };
    let fence = SendSlot {
        fence: true,
        ..plain()
    };
    for (request, flag) in [
        (signaled, SendFlags::SIGNALED),
        (solicited, SendFlags::SOLICITED),
        (fence, SendFlags::FENCE),
        (
            slot(SendOperation::Send, SlotPayload::Inline(b"x")),
            SendFlags::INLINE,
        ),
    ] {
        assert_eq!(written(&request).0.wr.flags, flag);
    }
}

#[test]
fn pieces_and_bytes_stand_behind_the_element() {
    let sg_list = [sge(0x1000, 5), sge(0x2000, 6)];
    let request = slot(SendOperation::Send, SlotPayload::SgList(&sg_list));
    let (element, ring_memory) = written(&request);
    assert_eq!((element.dma.length, element.dma.sge_count), (11, 2));
    let found: [AbiSge; 2] = ring_memory.read(HEAD + size_of::<SendWqe>());
    assert_eq!(found, sg_list);
    let request = slot(SendOperation::Send, SlotPayload::Inline(b"hello"));
    let (element, ring_memory) = written(&request);
    assert_eq!((element.dma.length, element.dma.sge_count), (5, 0));
    let found: [u8; 6] = ring_memory.read(HEAD + size_of::<SendWqe>());
    assert_eq!(found, *b"hello\0");
}

#[test]
fn a_queue_holds_what_its_slots_do_but_one() {
    let [(ring_memory, place), _] = roomy_and_short(size_of::<SendWqe>() + 32);
    let behind = (place.size as usize - HEAD) / 8 - size_of::<SendWqe>();
    let sends = Sends::map(&ring_memory.uverbs, QUEUES, place).unwrap();
    assert_eq!(sends.capacity(), 7);
    assert_eq!(sends.max_inline() as usize, behind);
    assert_eq!(sends.max_sges() as usize, behind / size_of::<AbiSge>());
    let [(ring_memory, place), _] = roomy_and_short(size_of::<RecvWqe>() + 32);
    let behind = (place.size as usize - HEAD) / 8 - size_of::<RecvWqe>();
    let mut receives = Receives::map(&ring_memory.uverbs, QUEUES, place).unwrap();
    assert_eq!(receives.capacity(), 7);
    assert_eq!(receives.max_sges() as usize, behind / size_of::<AbiSge>());
    for number in 0..7 {
        assert!(receives.has_room());
        receives.push(number, &[sge(1, 2), sge(3, 4)]);
    }
    assert!(!receives.has_room());
    let element: RecvWqe = ring_memory.read(HEAD);
    assert_eq!((element.dma.length, element.dma.sge_count), (6, 2));
    let producer: u32 = ring_memory.read(std::mem::offset_of!(QueueHeader, producer_index));
    assert_eq!(producer, 7);
}

#[test]
fn each_type_of_queue_pair_has_its_operations() {
    let add = SendOperation::FetchAdd {
        remote: remote(),
        add: 1,
    };
    for (operation, types) in [
        (SendOperation::Send, [true, true, true]),
        (SendOperation::SendWithImmediate(1), [true, true, true]),
        (SendOperation::Write(remote()), [true, true, false]),
        (
            SendOperation::WriteWithImmediate(remote(), 1),
            [true, true, false],
        ),
        (SendOperation::Read(remote()), [true, false, false]),
        (SendOperation::SendWithInvalidate(1), [true, false, false]),
        (add, [true, false, false]),
    ] {
        let can = [QpType::RC, QpType::UC, QpType::UD].map(|one| Rxe.can(one, &operation));
        assert_eq!(can, types, "{operation:?}");
    }
    assert!(Rxe.resets() && !Rxe.completes_individually());
    assert!(Rxe.can_inline(&SendOperation::Send));
    assert!(!Rxe.can_inline(&SendOperation::Read(remote())));
    assert_eq!(Rxe.max_read_pieces(), u32::MAX);
}
