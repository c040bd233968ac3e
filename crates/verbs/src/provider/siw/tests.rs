//! Queues that a test accesses as the driver does.

mod queue_entries;

use std::collections::HashSet;
use std::mem::offset_of;

use crate::memory::RemoteMemory;
use rdmacm_abi::AccessFlags;
use rdmacm_abi::uverbs::siw::{
    self, CqControl, CqQueue, Cqe, CqeFlags, CqeStatus, NotifyFlags, Opcode, Rqe, Sqe, WqeFlags,
};
use rdmacm_abi::uverbs::{
    Header, RegMr, SendFlags, Sge as AbiSge, WcOpcode, WcStatus, WorkCompletion,
};
use rdmacm_core::QpType;
use zerocopy::FromZeros;

use super::{CompletionSlots, Queue, Siw};
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::provider::ring_memory::{
    RingMemory, assert_invalid_queue, poll_all, poll_while_closing, push,
};
use crate::provider::{CompletionRing, Provider, ReceiveRing, SendRing, SendSlot, SlotPayload};
use crate::request::SendOperation;

const COMPLETIONS: Operation = Operation::CreateCompletionQueue { entries: 8 };
const QUEUES: Operation = Operation::CreateQueuePair(QpType::RC);
/// The index wraps around soon after this.
const BEFORE_WRAP: u32 = u32::MAX - 2;
const FLAGS: usize = offset_of!(Cqe, flags);

fn memory() -> RingMemory {
    RingMemory::new(1 << 16, Siw)
}

fn completions(ring_memory: &RingMemory, entries: u32) -> Result<CompletionSlots> {
    let mut queue = CqQueue::new_zeroed();
    queue.entries = entries;
    CompletionSlots::map(&ring_memory.uverbs, COMPLETIONS, queue)
}

fn completed(id: u64) -> Cqe {
    Cqe {
        id,
        flags: CqeFlags::VALID,
        ..Cqe::new_zeroed()
    }
}

#[test]
fn invalid_sizes_are_refused() {
    let ring_memory = memory();
    for entries in [0, 3, 6, u32::MAX] {
        assert_invalid_queue(completions(&ring_memory, entries));
    }
    for entries in [3, 6] {
        assert_invalid_queue(Queue::<Sqe>::map(&ring_memory.uverbs, QUEUES, 0, entries));
        assert_invalid_queue(Queue::<Rqe>::map(&ring_memory.uverbs, QUEUES, 0, entries));
    }
}

#[test]
fn invalid_offsets_are_refused() {
    let ring_memory = memory();
    for (offset, entries) in [(0, 0), (1, 8), (u64::MAX, 8)] {
        let errors = [
            Queue::<Sqe>::map(&ring_memory.uverbs, QUEUES, offset, entries).map(drop),
            Queue::<Rqe>::map(&ring_memory.uverbs, QUEUES, offset, entries).map(drop),
        ];
        for error in errors {
            let error = error.unwrap_err();
            let errno = libc::EINVAL;
            assert_eq!(error, Error::Map { errno });
        }
    }
    assert!(!ring_memory.uverbs.is_unusable());
}

#[test]
fn completions_are_polled_in_order() {
    let ring_memory = memory();
    let mut ring = completions(&ring_memory, 8).unwrap();
    assert_eq!((ring.capacity(), ring.pop()), (8, None));
    ring.next = BEFORE_WRAP;
    let hint = ring.hint().unwrap();
    for id in 1..100_u32 {
        let slot = (BEFORE_WRAP.wrapping_add(id - 1) % 8) as usize * size_of::<Cqe>();
        let watch = hint.watch(ring.next_slot().unwrap());
        assert!(!watch.has_any());
        ring_memory.write(slot, &completed(id.into()));
        assert!(watch.has_any() && hint.watch(ring.next_slot().unwrap()).has_any());
        assert_eq!(poll_all(&mut ring).len(), 1);
        let flags: u8 = ring_memory.read(slot + FLAGS);
        assert_eq!(flags, 0);
    }
    assert_eq!(ring.next, BEFORE_WRAP.wrapping_add(99));
}

#[test]
fn polling_invalid_completions_ends() {
    let ring_memory = memory();
    let mut ring = completions(&ring_memory, 8).unwrap();
    ring_memory.write(0, &[0xff_u8; 8 * size_of::<Cqe>()]);
    let invalid = poll_all(&mut ring);
    assert_eq!(invalid.len(), 8);
    for one in invalid {
        assert_eq!(one.status, WcStatus::GENERAL_ERR);
        assert_eq!(one.opcode, WcOpcode::SEND);
        assert_eq!((one.id, one.qp_number), (u64::MAX, u32::MAX));
    }
    // Not polled before the slots in front of it.
    ring_memory.write(3 * size_of::<Cqe>(), &completed(7));
    assert_eq!(ring.pop(), None);
}

#[test]
fn completions_are_translated() {
    let ring_memory = memory();
    let mut ring = completions(&ring_memory, 1).unwrap();
    let element = Cqe {
        opcode: Opcode::RECEIVE,
        status: CqeStatus::LOC_LEN_ERR,
        bytes: 5,
        qp_number: 0xabcdef,
        ..completed(9)
    };
    ring_memory.write(0, &element);
    let completion = ring.pop().unwrap();
    assert_eq!(completion.status, WcStatus::LOC_LEN_ERR);
    assert_eq!(completion.opcode, WcOpcode::RECV);
    assert_eq!((completion.id, completion.byte_len), (9, 5));
    assert_eq!(completion.qp_number, 0xabcdef);
}

#[test]
fn arming_sets_the_word_after_the_slots() {
    let ring_memory = memory();
    let mut ring = completions(&ring_memory, 8).unwrap();
    assert!(ring.arm());
    let control: CqControl = ring_memory.read(8 * size_of::<Cqe>());
    let both = NotifyFlags::SOLICITED | NotifyFlags::NEXT_COMPLETION;
    assert_eq!(control.flags, both);
}

#[test]
fn requests_are_posted_in_order() {
    let sends = memory();
    let receives = memory();
    let mut sending = Queue::<Sqe>::map(&sends.uverbs, QUEUES, 0, 8).unwrap();
    let mut receiving = Queue::<Rqe>::map(&receives.uverbs, QUEUES, 0, 8).unwrap();
    sending.next = BEFORE_WRAP;
    receiving.next = BEFORE_WRAP;
    let sge = AbiSge {
        address: 1,
        length: 2,
        lkey: 3,
    };
    for number in 0..8 {
        assert!(sending.has_room(1) && receiving.has_room());
        push(&mut sending, number);
        receiving.push(number, &[sge]);
    }
    assert!(!sending.has_room(1) && !receiving.has_room());
    for number in 0..100 {
        let index = BEFORE_WRAP.wrapping_add(number) as usize % 8;
        let offset = index * size_of::<Sqe>();
        let element: Sqe = sends.read(offset);
        assert_eq!(element.id, number.into());
        assert!(element.flags.contains(WqeFlags::VALID | WqeFlags::INLINE));
        sends.write(offset + offset_of!(Sqe, flags), &WqeFlags::empty());
        let offset = index * size_of::<Rqe>();
        let element: Rqe = receives.read(offset);
        assert_eq!((element.id, element.sge_count), (number.into(), 1));
        assert_eq!((element.sges[0], element.flags), (sge, WqeFlags::VALID));
        receives.write(offset + offset_of!(Rqe, flags), &WqeFlags::empty());
        assert!(sending.has_room(1) && !sending.has_room(2));
        push(&mut sending, u64::from(number) + 8);
        assert!(receiving.has_room());
        receiving.push(u64::from(number) + 8, &[sge]);
        assert!(!receiving.has_room());
    }
    assert!(sending.has_room(0) && !sending.has_room(9));
}

/// Each registration draws a new byte.
#[test]
fn keys_are_random() {
    let register = RegMr {
        response: 0,
        start: 0,
        length: 1,
        device_address: 0,
        pd: 0,
        access: AccessFlags::LOCAL_WRITE,
    };
    let bytes: Vec<u8> = (0..64)
        .map(|_| {
            let ring_memory = memory();
            let uverbs = &ring_memory.uverbs;
            let operation = Operation::Register { length: 1 };
            Siw.register(uverbs, operation, register).unwrap();
            let offset = size_of::<Header>() + offset_of!(siw::RegMr, key);
            ring_memory.read(offset)
        })
        .collect();
    let different: HashSet<_> = bytes.iter().collect();
    // About 57 of 64 random bytes are different.
    assert!(different.len() > 32, "{bytes:?}");
    let follows = |pair: &[u8]| pair[1] == pair[0].wrapping_add(1);
    let sequence = bytes.windows(2).filter(|pair| follows(pair)).count();
    assert!(sequence < 16, "{bytes:?}");
}

/// siw stops at a read with a fence.
#[test]
fn reads_are_posted_without_a_fence() {
    let ring_memory = memory();
    let mut ring = Queue::<Sqe>::map(&ring_memory.uverbs, QUEUES, 0, 8).unwrap();
    let remote = RemoteMemory::new(0x1000, 8, 7).unwrap();
    let operations = [SendOperation::Read(remote), SendOperation::Write(remote)];
    for (slot, operation) in operations.into_iter().enumerate() {
        ring.push(&SendSlot {
            number: 0,
            operation: &operation,
            flags: SendFlags::SIGNALED | SendFlags::FENCE,
            payload: SlotPayload::SgList(&[]),
            destination: None,
        });
        let element: Sqe = ring_memory.read(slot * size_of::<Sqe>());
        let fenced = element.flags.contains(WqeFlags::READ_FENCE);
        assert_eq!(fenced, slot == 1, "{operation:?}");
    }
}

#[test]
fn polling_ends_when_the_context_is_closed() {
    for _ in 0..200 {
        let ring_memory = memory();
        for slot in 0..8 {
            ring_memory.write(slot * size_of::<Cqe>(), &completed(7 + slot as u64));
        }
        let ring = completions(&ring_memory, 8).unwrap();
        let is_written = |one: &WorkCompletion| (7..15).contains(&one.id);
        poll_while_closing(&ring_memory, ring, is_written);
    }
}

#[test]
fn requests_are_discarded_after_the_context_is_closed() {
    let ring_memory = memory();
    let mut ring = Queue::<Sqe>::map(&ring_memory.uverbs, QUEUES, 0, 8).unwrap();
    ring_memory.uverbs.close();
    for number in 0..8 {
        assert!(ring.has_room(1));
        push(&mut ring, number);
    }
    assert!(!ring.has_room(1));
    let flags: WqeFlags = ring_memory.read(offset_of!(Sqe, flags));
    assert!(flags.is_empty());
}
