//! Queues whose other side a test is.

mod elements;

use std::collections::HashSet;
use std::mem::offset_of;

use crate::memory::RemoteMemory;
use rdmacm_abi::AccessFlags;
use rdmacm_abi::uverbs::siw::{
    self, CqControl, CqQueue, Cqe, CqeFlags, CqeStatus, NotifyFlags, Opcode, Rqe, Sqe, WqeFlags,
};
use rdmacm_abi::uverbs::{Header, RegMr, Sge as AbiSge, WcOpcode, WcStatus, WorkCompletion};
use rdmacm_core::QpType;
use zerocopy::FromZeros;

use super::{Completions, Receives, Sends, Siw};
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::provider::ring_memory::{ByHand, all, assert_nonsense, push, read_while_closed};
use crate::provider::{CompletionRing, Provider, ReceiveRing, SendRing, SendSlot, SlotPayload};
use crate::request::SendOperation;

const COMPLETIONS: Operation = Operation::CreateCompletionQueue { entries: 8 };
const QUEUES: Operation = Operation::CreateQueuePair(QpType::RC);
/// Where the index turns over is among the first.
const BEFORE_THE_LAST: u32 = u32::MAX - 2;
const FLAGS: usize = offset_of!(Cqe, flags);

fn memory() -> ByHand {
    ByHand::of(1 << 16, Siw)
}

fn completions(ring_memory: &ByHand, entries: u32) -> Result<Completions> {
    let mut queue = CqQueue::new_zeroed();
    queue.entries = entries;
    Completions::map(&ring_memory.uverbs, COMPLETIONS, queue)
}

fn told(id: u64) -> Cqe {
    Cqe {
        id,
        flags: CqeFlags::VALID,
        ..Cqe::new_zeroed()
    }
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let ring_memory = memory();
    for entries in [0, 3, 6, u32::MAX] {
        assert_nonsense(completions(&ring_memory, entries));
    }
    for entries in [3, 6] {
        assert_nonsense(Sends::map(&ring_memory.uverbs, QUEUES, 0, entries));
        assert_nonsense(Receives::map(&ring_memory.uverbs, QUEUES, 0, entries));
    }
}

#[test]
fn places_that_cannot_be_are_refused() {
    let ring_memory = memory();
    for (offset, entries) in [(0, 0), (1, 8), (u64::MAX, 8)] {
        let errors = [
            Sends::map(&ring_memory.uverbs, QUEUES, offset, entries).map(drop),
            Receives::map(&ring_memory.uverbs, QUEUES, offset, entries).map(drop),
        ];
        for error in errors {
            let error = error.unwrap_err();
            let errno = libc::EINVAL;
            assert_eq!(error, Error::Map { errno });
        }
    }
    assert!(!ring_memory.uverbs.is_gone());
}

#[test]
fn completions_come_round_in_order() {
    let ring_memory = memory();
    let mut ring = completions(&ring_memory, 8).unwrap();
    assert_eq!((ring.capacity(), ring.pop()), (8, None));
    ring.next = BEFORE_THE_LAST;
    for id in 1..100_u32 {
        let slot = (BEFORE_THE_LAST.wrapping_add(id - 1) % 8) as usize * size_of::<Cqe>();
        ring_memory.write(slot, &told(id.into()));
        assert_eq!(all(&mut ring).len(), 1);
        let flags: u8 = ring_memory.read(slot + FLAGS);
        assert_eq!(flags, 0);
    }
    assert_eq!(ring.next, BEFORE_THE_LAST.wrapping_add(99));
}

#[test]
fn a_queue_full_of_nonsense_has_an_end() {
    let ring_memory = memory();
    let mut ring = completions(&ring_memory, 8).unwrap();
    ring_memory.write(0, &[0xff_u8; 8 * size_of::<Cqe>()]);
    let nonsense = all(&mut ring);
    assert_eq!(nonsense.len(), 8);
    for one in nonsense {
        assert_eq!(one.status, WcStatus::GENERAL_ERR);
        assert_eq!(one.opcode, WcOpcode::SEND);
        assert_eq!((one.id, one.qp_number), (u64::MAX, u32::MAX));
    }
    // Out of turn: not seen before those in front.
    ring_memory.write(3 * size_of::<Cqe>(), &told(7));
    assert_eq!(ring.pop(), None);
}

#[test]
fn what_is_told_is_translated() {
    let ring_memory = memory();
    let mut ring = completions(&ring_memory, 1).unwrap();
    let element = Cqe {
        opcode: Opcode::RECEIVE,
        status: CqeStatus::LOC_LEN_ERR,
        bytes: 5,
        qp_number: 0xabcdef,
        ..told(9)
    };
    ring_memory.write(0, &element);
    let completion = ring.pop().unwrap();
    assert_eq!(completion.status, WcStatus::LOC_LEN_ERR);
    assert_eq!(completion.opcode, WcOpcode::RECV);
    assert_eq!((completion.id, completion.byte_len), (9, 5));
    assert_eq!(completion.qp_number, 0xabcdef);
}

#[test]
fn arming_is_seen_behind_the_slots() {
    let ring_memory = memory();
    let mut ring = completions(&ring_memory, 8).unwrap();
    ring.arm(&ring_memory.uverbs, 0, true).unwrap();
    let control: CqControl = ring_memory.read(8 * size_of::<Cqe>());
    let both = NotifyFlags::SOLICITED | NotifyFlags::NEXT_COMPLETION;
    assert_eq!(control.flags, both);
}

#[test]
fn requests_go_round_in_order() {
    let sends = memory();
    let receives = memory();
    let mut sending = Sends::map(&sends.uverbs, QUEUES, 0, 8).unwrap();
    let mut receiving = Receives::map(&receives.uverbs, QUEUES, 0, 8).unwrap();
    sending.0.next = BEFORE_THE_LAST;
    receiving.0.next = BEFORE_THE_LAST;
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
        let index = BEFORE_THE_LAST.wrapping_add(number) as usize % 8;
        let place = index * size_of::<Sqe>();
        let element: Sqe = sends.read(place);
        assert_eq!(element.id, number.into());
        assert!(element.flags.contains(WqeFlags::VALID | WqeFlags::INLINE));
        sends.write(place + offset_of!(Sqe, flags), &WqeFlags::empty());
        let place = index * size_of::<Rqe>();
        let element: Rqe = receives.read(place);
        assert_eq!((element.id, element.sge_count), (number.into(), 1));
        assert_eq!((element.sges[0], element.flags), (sge, WqeFlags::VALID));
        receives.write(place + offset_of!(Rqe, flags), &WqeFlags::empty());
        assert!(sending.has_room(1) && !sending.has_room(2));
        push(&mut sending, u64::from(number) + 8);
        assert!(receiving.has_room());
        receiving.push(u64::from(number) + 8, &[sge]);
        assert!(!receiving.has_room());
    }
    assert!(sending.has_room(0) && !sending.has_room(9));
}

/// Each registration of each context, the first too, has a byte of its own.
#[test]
fn keys_are_not_to_be_foretold() {
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
            let place = size_of::<Header>() + offset_of!(siw::RegMr, key);
            ring_memory.read(place)
        })
        .collect();
    let different: HashSet<_> = bytes.iter().collect();
    // Of 64 random bytes some 57 differ.
    assert!(different.len() > 32, "{bytes:?}");
    let follows = |pair: &[u8]| pair[1] == pair[0].wrapping_add(1);
    let sequence = bytes.windows(2).filter(|pair| follows(pair)).count();
    assert!(sequence < 16, "{bytes:?}");
}

/// A queue that meets a read with a fence stops for good.
#[test]
fn reads_go_without_a_fence() {
    let ring_memory = memory();
    let mut ring = Sends::map(&ring_memory.uverbs, QUEUES, 0, 8).unwrap();
    let remote = RemoteMemory::new(0x1000, 8, 7).unwrap();
    let operations = [SendOperation::Read(remote), SendOperation::Write(remote)];
    for (slot, operation) in operations.into_iter().enumerate() {
        ring.push(&SendSlot {
            number: 0,
            operation,
            signaled: true,
            solicited: false,
            fence: true,
            payload: SlotPayload::SgList(&[]),
            destination: None,
        });
        let element: Sqe = ring_memory.read(slot * size_of::<Sqe>());
        let fenced = element.flags.contains(WqeFlags::READ_FENCE);
        assert_eq!(fenced, slot == 1, "{operation:?}");
    }
}

#[test]
fn a_queue_is_empty_when_its_context_has_ended() {
    for _ in 0..200 {
        let ring_memory = memory();
        for slot in 0..8 {
            ring_memory.write(slot * size_of::<Cqe>(), &told(7 + slot as u64));
        }
        let ring = completions(&ring_memory, 8).unwrap();
        let is_written = |one: &WorkCompletion| (7..15).contains(&one.id);
        read_while_closed(&ring_memory, ring, is_written);
    }
}

#[test]
fn requests_go_nowhere_when_the_context_has_ended() {
    let ring_memory = memory();
    let mut ring = Sends::map(&ring_memory.uverbs, QUEUES, 0, 8).unwrap();
    ring_memory.uverbs.close();
    for number in 0..8 {
        assert!(ring.has_room(1));
        push(&mut ring, number);
    }
    assert!(!ring.has_room(1));
    let flags: WqeFlags = ring_memory.read(offset_of!(Sqe, flags));
    assert!(flags.is_empty());
}
