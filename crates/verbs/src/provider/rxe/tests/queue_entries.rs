//! The entries of rxe's queues.

use rdmacm_abi::uverbs::rxe::{DatagramTarget, QueueHeader, RdmaTarget, RecvWqe, SendWqe, Target};
use rdmacm_abi::uverbs::{ImmediateOrKey, SendFlags, Sge as AbiSge, WrOpcode};
use rdmacm_abi::{Be32, Reserved};
use rdmacm_core::QpType;

use super::{HEADER, QUEUES, large_and_small_slots};
use crate::opcodes::Opcodes;
use crate::provider::ring_memory::{RingMemory, remote, sge, slot};
use crate::provider::rxe::{Queue, Rxe};
use crate::provider::{Provider, ReceiveRing, SendRing, SendSlot, SlotPayload, UdDestination};
use crate::request::SendOperation;

/// The entry that the driver reads, and the memory.
fn written(request: &SendSlot<'_>) -> (SendWqe, RingMemory) {
    let [(ring_memory, info), _] = large_and_small_slots(size_of::<SendWqe>() + 32);
    let mut ring = Queue::<SendWqe>::map(&ring_memory.uverbs, QUEUES, info).unwrap();
    ring.push(request);
    (ring_memory.read(HEADER), ring_memory)
}

const NOTHING: SlotPayload<'static> = SlotPayload::SgList(&[]);

#[test]
fn each_operation_has_its_opcode_immediate_and_target() {
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
        let (element, _) = written(&slot(&operation, NOTHING));
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
            qp_number: 6,
            qkey: 7,
        }),
        ..slot(&SendOperation::Send, NOTHING)
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
fn each_option_is_a_flag() {
    let plain = || slot(&SendOperation::Send, NOTHING);
    let signaled = SendSlot {
        flags: SendFlags::SIGNALED,
        ..plain()
    };
    let solicited = SendSlot {
        flags: SendFlags::SOLICITED,
        ..plain()
    };
    let fence = SendSlot {
        flags: SendFlags::FENCE,
        ..plain()
    };
    for (request, flag) in [
        (signaled, SendFlags::SIGNALED),
        (solicited, SendFlags::SOLICITED),
        (fence, SendFlags::FENCE),
        (
            slot(&SendOperation::Send, SlotPayload::Inline(b"x")),
            SendFlags::INLINE,
        ),
    ] {
        assert_eq!(written(&request).0.wr.flags, flag);
    }
}

#[test]
fn entries_and_inline_bytes_follow_the_element() {
    let sg_list = [sge(0x1000, 5), sge(0x2000, 6)];
    let request = slot(&SendOperation::Send, SlotPayload::SgList(&sg_list));
    let (element, ring_memory) = written(&request);
    assert_eq!((element.dma.length, element.dma.sge_count), (11, 2));
    let found: [AbiSge; 2] = ring_memory.read(HEADER + size_of::<SendWqe>());
    assert_eq!(found, sg_list);
    let request = slot(&SendOperation::Send, SlotPayload::Inline(b"hello"));
    let (element, ring_memory) = written(&request);
    assert_eq!((element.dma.length, element.dma.sge_count), (5, 0));
    let found: [u8; 6] = ring_memory.read(HEADER + size_of::<SendWqe>());
    assert_eq!(found, *b"hello\0");
}

#[test]
fn a_queue_holds_one_request_less_than_slots() {
    let [(ring_memory, info), _] = large_and_small_slots(size_of::<SendWqe>() + 32);
    let tail = (info.size as usize - HEADER) / 8 - size_of::<SendWqe>();
    let sends = Queue::<SendWqe>::map(&ring_memory.uverbs, QUEUES, info).unwrap();
    assert_eq!(sends.capacity(), 7);
    assert_eq!(sends.max_inline() as usize, tail);
    assert_eq!(sends.max_sges() as usize, tail / size_of::<AbiSge>());
    let [(ring_memory, info), _] = large_and_small_slots(size_of::<RecvWqe>() + 32);
    let tail = (info.size as usize - HEADER) / 8 - size_of::<RecvWqe>();
    let mut receives = Queue::<RecvWqe>::map(&ring_memory.uverbs, QUEUES, info).unwrap();
    assert_eq!(receives.capacity(), 7);
    assert_eq!(receives.max_sges() as usize, tail / size_of::<AbiSge>());
    for number in 0..7 {
        assert!(receives.has_room());
        receives.push(number, &[sge(1, 2), sge(3, 4)]);
    }
    assert!(!receives.has_room());
    let element: RecvWqe = ring_memory.read(HEADER);
    assert_eq!((element.dma.length, element.dma.sge_count), (6, 2));
    let producer: u32 = ring_memory.read(std::mem::offset_of!(QueueHeader, producer_index));
    assert_eq!(producer, 7);
}

#[test]
fn each_queue_pair_type_supports_its_operations() {
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
        let supported = [QpType::RC, QpType::UC, QpType::UD]
            .map(|one| Rxe.operations(one).contain(operation.opcode()));
        assert_eq!(supported, types, "{operation:?}");
    }
    assert!(Rxe.resets() && !Rxe.completes_individually());
    assert_eq!(Rxe.inline_operations(), Opcodes::ALL);
    assert_eq!(Rxe.max_read_sges(), u32::MAX);
}

const ALL_FLAGS: SendFlags = SendFlags::SIGNALED
    .union(SendFlags::SOLICITED)
    .union(SendFlags::FENCE);

/// Also in a slot that the driver has used.
#[test]
fn a_send_of_one_entry_is_written_as_any_other() {
    for flags in [SendFlags::empty(), ALL_FLAGS] {
        let sges = [sge(0x2000, 5)];
        let (expected, _) = written(&SendSlot {
            flags,
            ..slot(&SendOperation::Send, SlotPayload::SgList(&sges))
        });
        let [(ring_memory, info), _] = large_and_small_slots(size_of::<SendWqe>() + 32);
        let mut ring = Queue::<SendWqe>::map(&ring_memory.uverbs, QUEUES, info).unwrap();
        ring_memory.write(HEADER, &[0xff_u8; size_of::<SendWqe>() + 16]);
        ring.push_send(expected.wr.id, flags, sges[0], || ());
        let mut element: SendWqe = ring_memory.read(HEADER);
        // The driver does not look at it.
        element.wr.target = expected.wr.target;
        assert_eq!(element, expected);
        let behind: AbiSge = ring_memory.read(HEADER + size_of::<SendWqe>());
        assert_eq!((behind, ring.free_slots()), (sges[0], 6));
    }
}

#[test]
fn a_receive_of_one_entry_is_written_as_any_other() {
    let elements = [false, true].map(|one| {
        let [(ring_memory, info), _] = large_and_small_slots(size_of::<RecvWqe>() + 16);
        let mut ring = Queue::<RecvWqe>::map(&ring_memory.uverbs, QUEUES, info).unwrap();
        if one {
            ring.push_one(7, sge(0x2000, 5), || ());
        } else {
            ring.push(7, &[sge(0x2000, 5)]);
        }
        assert_eq!(ring.room(1), 6);
        let behind: AbiSge = ring_memory.read(HEADER + size_of::<RecvWqe>());
        (ring_memory.read::<RecvWqe>(HEADER), behind)
    });
    assert_eq!(elements[0], elements[1]);
}
