//! The entries of siw's queues.

use std::mem::offset_of;

use rdmacm_abi::uverbs::siw::{
    Cqe, CqeFlags, CqeStatus, MAX_INLINE, MAX_SGE, Opcode, Rqe, Sqe, WqeFlags,
};
use rdmacm_abi::uverbs::{SendFlags, Sge as AbiSge, WcFlags, WcOpcode, WcStatus};
use rdmacm_core::{QpAttr, QpType};
use zerocopy::FromZeros;

use super::{QUEUES, completed, completions, memory};
use crate::provider::Rxe;
use crate::provider::ring_memory::{remote, sge, slot};
use crate::provider::siw::{Queue, Siw};
use crate::provider::{CompletionRing, Provider, ReceiveRing, SendRing, SendSlot, SlotPayload};
use crate::request::SendOperation;

/// The entry that the driver reads.
fn written(request: &SendSlot<'_>) -> Sqe {
    let ring_memory = memory();
    let mut ring = Queue::<Sqe>::map(&ring_memory.uverbs, QUEUES, 0, 4).unwrap();
    ring.push(request);
    ring_memory.read(0)
}

#[test]
fn each_operation_has_its_opcode_and_remote_memory() {
    let (address, key) = (remote().address(), remote().key());
    for (operation, opcode, offset) in [
        (SendOperation::Send, Opcode::SEND, (0, 0)),
        (
            SendOperation::SendWithInvalidate(0x99),
            Opcode::SEND_REMOTE_INV,
            (0, 0x99),
        ),
        (
            SendOperation::Write(remote()),
            Opcode::WRITE,
            (address, key),
        ),
        (SendOperation::Read(remote()), Opcode::READ, (address, key)),
    ] {
        let element = written(&slot(&operation, SlotPayload::SgList(&[])));
        assert_eq!((element.id, element.opcode), (0x1_0000_0002, opcode));
        assert_eq!((element.remote_address, element.rkey), offset);
        let sge_count = u8::from(opcode == Opcode::READ);
        assert_eq!(element.flags, WqeFlags::VALID);
        assert_eq!(element.sge_count, sge_count);
        assert!(Siw.operations(QpType::RC).contain(operation.opcode()));
        assert!(!Siw.operations(QpType::UD).contain(operation.opcode()));
    }
    for operation in [
        SendOperation::SendWithImmediate(1),
        SendOperation::WriteWithImmediate(remote(), 1),
        SendOperation::FetchAdd {
            remote: remote(),
            add: 1,
        },
    ] {
        let operations = Siw.operations(QpType::RC);
        assert!(!operations.contain(operation.opcode()), "{operation:?}");
    }
}

#[test]
fn each_option_is_a_flag() {
    let plain = || slot(&SendOperation::Send, SlotPayload::SgList(&[]));
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
        (signaled, WqeFlags::SIGNALLED),
        (solicited, WqeFlags::SOLICITED),
        (fence, WqeFlags::READ_FENCE),
    ] {
        assert_eq!(written(&request).flags, WqeFlags::VALID | flag);
    }
}

#[test]
fn scatter_gather_entries_are_copied() {
    let sg_list = [sge(0x1000, 5), sge(0x2000, 6)];
    let element = written(&slot(&SendOperation::Send, SlotPayload::SgList(&sg_list)));
    assert_eq!(element.sge_count, 2);
    assert_eq!(element.sges[..2], sg_list);
}

/// siw reads into the first entry of a read, whatever their number is.
#[test]
fn an_empty_read_has_an_entry_without_memory() {
    let earlier = [sge(0x2000, 4096)];
    let read = SendOperation::Read(remote());
    for nothing in [
        &[][..],
        &[sge(0x3000, 0)],
        &[sge(0x3000, 0), sge(0x4000, 0)],
    ] {
        let ring_memory = memory();
        let mut ring = Queue::<Sqe>::map(&ring_memory.uverbs, QUEUES, 0, 1).unwrap();
        ring.push(&slot(&SendOperation::Send, SlotPayload::SgList(&earlier)));
        assert_eq!(ring_memory.read::<Sqe>(0).sges[0], earlier[0]);
        ring_memory.write(offset_of!(Sqe, flags), &WqeFlags::empty());
        assert!(ring.has_room(1));
        ring.push(&slot(&read, SlotPayload::SgList(nothing)));
        let element: Sqe = ring_memory.read(0);
        assert_eq!(element.sge_count, 1, "{nothing:?}");
        assert_eq!(element.sges[0], AbiSge::new_zeroed(), "{nothing:?}");
    }
}

/// An empty entry after it prevents siw from copying it after the header.
#[test]
fn a_short_entry_is_followed_by_an_empty_one() {
    let count = |operation, length| {
        let sg_list = [sge(0x2ffd, length)];
        let element = written(&slot(&operation, SlotPayload::SgList(&sg_list)));
        assert_eq!(element.sges[..2], [sg_list[0], AbiSge::new_zeroed()]);
        element.sge_count
    };
    for (operation, short) in [
        (SendOperation::Send, 2),
        (SendOperation::SendWithInvalidate(1), 2),
        (SendOperation::Write(remote()), 2),
        (SendOperation::Read(remote()), 1),
    ] {
        assert_eq!(count(operation, 1), short, "{operation:?}");
        assert_eq!(count(operation, 32), short, "{operation:?}");
        assert_eq!(count(operation, 33), 1, "{operation:?}");
    }
}

#[test]
fn inline_bytes_follow_their_length() {
    let element = written(&slot(&SendOperation::Send, SlotPayload::Inline(b"hello")));
    assert_eq!(element.flags, WqeFlags::VALID | WqeFlags::INLINE);
    assert_eq!((element.sge_count, element.sges[0].length), (1, 5));
    assert_eq!(element.inline_data()[..6], *b"hello\0");
    let none = written(&slot(&SendOperation::Send, SlotPayload::Inline(b"")));
    assert_eq!((none.flags, none.sge_count), (WqeFlags::VALID, 0));
    for (operation, supported) in [
        (SendOperation::Send, true),
        (SendOperation::Write(remote()), true),
        (SendOperation::SendWithInvalidate(1), false),
        (SendOperation::Read(remote()), false),
    ] {
        let inline = Siw.inline_operations().contain(operation.opcode());
        assert_eq!(inline, supported, "{operation:?}");
    }
}

#[test]
fn a_queue_holds_as_many_requests_as_slots() {
    let ring_memory = memory();
    let sends = Queue::<Sqe>::map(&ring_memory.uverbs, QUEUES, 0, 8).unwrap();
    assert_eq!(sends.capacity(), 8);
    assert_eq!((sends.max_sges() as usize, MAX_SGE), (6, 6));
    assert_eq!(sends.max_inline() as usize, MAX_INLINE);
    assert!(sends.has_room(8) && !sends.has_room(9) && sends.has_room(0));
    let receives = Queue::<Rqe>::map(&ring_memory.uverbs, QUEUES, 0, 8).unwrap();
    assert_eq!((receives.capacity(), receives.max_sges()), (8, 6));
    let mut receives = Queue::<Rqe>::map(&ring_memory.uverbs, QUEUES, 0, 1).unwrap();
    receives.push(9, &[sge(1, 2), sge(3, 0), sge(4, 5)]);
    let element: Rqe = ring_memory.read(0);
    assert_eq!((element.id, element.sge_count), (9, 2));
    assert_eq!(element.sges[..2], [sge(1, 2), sge(4, 5)]);
    assert!(!receives.has_room());
}

#[test]
fn each_status_and_operation_is_translated() {
    let completion = |element: Cqe| {
        let ring_memory = memory();
        let mut ring = completions(&ring_memory, 1).unwrap();
        ring_memory.write(0, &element);
        ring.pop().unwrap()
    };
    for (siw, common) in [
        (CqeStatus::SUCCESS, WcStatus::SUCCESS),
        (CqeStatus::LOC_LEN_ERR, WcStatus::LOC_LEN_ERR),
        (CqeStatus::LOC_PROT_ERR, WcStatus::LOC_PROT_ERR),
        (CqeStatus::LOC_QP_OP_ERR, WcStatus::LOC_QP_OP_ERR),
        (CqeStatus::WR_FLUSH_ERR, WcStatus::WR_FLUSH_ERR),
        (CqeStatus::BAD_RESP_ERR, WcStatus::BAD_RESP_ERR),
        (CqeStatus::LOC_ACCESS_ERR, WcStatus::LOC_ACCESS_ERR),
        (CqeStatus::REM_ACCESS_ERR, WcStatus::REM_ACCESS_ERR),
        (CqeStatus::REM_INV_REQ_ERR, WcStatus::REM_INV_REQ_ERR),
        (CqeStatus::GENERAL_ERR, WcStatus::GENERAL_ERR),
    ] {
        let status = Cqe {
            status: siw,
            ..completed(1)
        };
        assert_eq!(completion(status).status, common);
    }
    for (siw, common) in [
        (Opcode::SEND, WcOpcode::SEND),
        (Opcode::WRITE, WcOpcode::RDMA_WRITE),
        (Opcode::READ, WcOpcode::RDMA_READ),
        (Opcode::READ_LOCAL_INV, WcOpcode::RDMA_READ),
        (Opcode::RECEIVE, WcOpcode::RECV),
    ] {
        let opcode = Cqe {
            opcode: siw,
            ..completed(1)
        };
        let completion = completion(opcode);
        assert_eq!(completion.opcode, common);
        assert_eq!(completion.flags, WcFlags::empty());
    }
    let invalidated = Cqe {
        flags: CqeFlags::VALID | CqeFlags::REM_INVAL,
        ..completed(1)
    };
    assert_eq!(completion(invalidated).flags, WcFlags::WITH_INVALIDATE);
}

#[test]
fn a_completion_queue_cannot_be_resized() {
    let ring_memory = memory();
    let mut ring = completions(&ring_memory, 4).unwrap();
    let refused = ring.resize(&ring_memory.uverbs, 0, 8).unwrap_err();
    assert!(refused.to_string().contains("cannot resize"), "{refused}");
}

#[test]
fn siw_reports_read_depths_swapped() {
    let mut attr = QpAttr::new_zeroed();
    (attr.max_destination_rd_atomic, attr.max_rd_atomic) = (4, 2);
    assert_eq!(Siw.initiator_depth(&attr), 4);
    assert_eq!(Siw.max_read_sges(), 1);
}

#[test]
fn peers_of_siw_can_overrun_reads() {
    assert!(Siw.overruns_reads() && !Rxe.overruns_reads());
}

#[test]
fn a_request_of_one_entry_is_written_as_any_other() {
    let all = SendFlags::SIGNALED | SendFlags::SOLICITED | SendFlags::FENCE;
    for length in [0, 1, 32, 33, 4096] {
        for flags in [SendFlags::empty(), all] {
            let sges = [sge(0x2000, length)];
            let mut expected = written(&SendSlot {
                flags,
                ..slot(&SendOperation::Send, SlotPayload::SgList(&sges))
            });
            let ring_memory = memory();
            let mut ring = Queue::<Sqe>::map(&ring_memory.uverbs, QUEUES, 0, 4).unwrap();
            ring.push_send(expected.id, flags, sges[0], || ());
            // Entries beyond the count are not read.
            expected.sges[0] = sges[0];
            assert_eq!(ring_memory.read::<Sqe>(0), expected, "{length}");
        }
        let elements = [false, true].map(|one| {
            let ring_memory = memory();
            let mut ring = Queue::<Rqe>::map(&ring_memory.uverbs, QUEUES, 0, 4).unwrap();
            if one {
                ring.push_one(7, sge(0x2000, length), || ());
            } else {
                ring.push(7, &[sge(0x2000, length)]);
            }
            let mut element: Rqe = ring_memory.read(0);
            element.sges[0] = sge(0x2000, length);
            element
        });
        assert_eq!(elements[0], elements[1], "{length}");
    }
}
