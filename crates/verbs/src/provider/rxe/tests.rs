//! Queues whose other side a test is.

mod elements;

use std::mem::offset_of;

use rdmacm_abi::Reserved;
use rdmacm_abi::uverbs::rxe::{AtomicTarget, MapInfo, QueueHeader, RecvWqe, SendWqe, Target};
use rdmacm_abi::uverbs::{Sge as AbiSge, WcStatus, WorkCompletion};
use rdmacm_core::QpType;
use zerocopy::FromZeros;

use super::{Completions, Receives, Rxe, Sends};
use crate::error::Result;
use crate::memory::RemoteMemory;
use crate::operation::Operation;
use crate::provider::ring_memory::{ByHand, all, assert_nonsense, push, read_while_closed};
use crate::provider::{CompletionRing, ReceiveRing, SendRing, SendSlot, SlotPayload};
use crate::request::SendOperation;

const HEAD: usize = size_of::<QueueHeader>();
const COMPLETIONS: Operation = Operation::CreateCompletionQueue { entries: 7 };
const QUEUES: Operation = Operation::CreateQueuePair(QpType::RC);
const LAST: u32 = u32::MAX;

/// A queue with slots of a power of two of bytes, as the driver lays it out.
fn queue(log2_elem_size: u32, index_mask: u32, length: usize) -> ByHand {
    let ring_memory = ByHand::of(length, Rxe);
    let mut header = QueueHeader::new_zeroed();
    header.log2_elem_size = log2_elem_size;
    header.index_mask = index_mask;
    ring_memory.write(0, &header);
    ring_memory
}

/// One of eight slots, as long as all of them.
fn whole(log2_elem_size: u32) -> ByHand {
    queue(log2_elem_size, 7, HEAD + (8 << log2_elem_size))
}

fn info(by_hand_size: usize) -> MapInfo {
    MapInfo {
        offset: 0,
        size: by_hand_size.try_into().unwrap(),
        padding: Reserved::ZERO,
    }
}

fn completions(ring_memory: &ByHand, length: usize) -> Result<Completions> {
    Completions::map(&ring_memory.uverbs, COMPLETIONS, info(length))
}

const SLOT: usize = 64;
const LENGTH: usize = HEAD + 8 * SLOT;

fn indices(ring_memory: &ByHand, producer: u32, consumer: u32) {
    ring_memory.write(offset_of!(QueueHeader, producer_index), &producer);
    ring_memory.write(offset_of!(QueueHeader, consumer_index), &consumer);
}

fn told(id: u64) -> WorkCompletion {
    WorkCompletion {
        id,
        status: WcStatus::SUCCESS,
        ..WorkCompletion::new_zeroed()
    }
}

#[test]
fn heads_that_cannot_be_are_refused() {
    assert!(completions(&whole(6), LENGTH).is_ok());
    for (log2_elem_size, index_mask) in [
        // Slots of no size, of one that is not aligned, of one beyond numbers.
        (0, 7),
        (2, 7),
        (62, 7),
        (63, 7),
        (64, 7),
        (LAST, 7),
        // Shorter than what is to be in them.
        (3, 7),
        (5, 7),
        // No powers of two.
        (6, 4),
        (6, 6),
        (6, LAST - 1),
        // More than numbers say, and more than there are.
        (6, LAST),
        (6, 15),
        (6, LAST / 2),
        (7, 7),
    ] {
        let ring_memory = queue(log2_elem_size, index_mask, LENGTH);
        let outcome = completions(&ring_memory, LENGTH);
        assert!(outcome.is_err(), "{log2_elem_size}, {index_mask}");
        assert_nonsense(outcome);
    }
}

#[test]
fn a_mapping_that_is_too_short_is_refused() {
    for length in [8, HEAD - 1, HEAD, HEAD + 8, LENGTH - 1] {
        assert_nonsense(completions(&whole(6), length));
    }
    assert_eq!(
        completions(&whole(6), 0).unwrap_err().raw_os_error(),
        Some(libc::EINVAL)
    );
}

/// Slots with room for so many bytes, and the next fewer.
fn roomy_and_short(bytes: usize) -> [(ByHand, MapInfo); 2] {
    let log2 = bytes.next_power_of_two().trailing_zeros();
    [log2, log2 - 1].map(|log2| (whole(log2), info(HEAD + (8 << log2))))
}

#[test]
fn elements_need_their_room() {
    let [(ring_memory, place), (short, short_place)] = roomy_and_short(size_of::<SendWqe>());
    assert!(Sends::map(&ring_memory.uverbs, QUEUES, place).is_ok());
    assert_nonsense(Sends::map(&short.uverbs, QUEUES, short_place));
    let [(ring_memory, place), (short, short_place)] = roomy_and_short(size_of::<RecvWqe>());
    assert!(Receives::map(&ring_memory.uverbs, QUEUES, place).is_ok());
    assert_nonsense(Receives::map(&short.uverbs, QUEUES, short_place));
}

#[test]
fn completions_come_round_in_order() {
    let ring_memory = whole(6);
    let mut ring = completions(&ring_memory, LENGTH).unwrap();
    assert_eq!((ring.capacity(), ring.pop()), (7, None));
    for number in 1..100_u32 {
        // Two at once.
        let slots = [2 * number, 2 * number + 1].map(|index| index % 8);
        indices(&ring_memory, slots[0], slots[0]);
        for (slot, id) in slots.into_iter().zip(number.into()..) {
            ring_memory.write(HEAD + SLOT * slot as usize, &told(id));
        }
        let next = (slots[1] + 1) % 8;
        ring_memory.write(offset_of!(QueueHeader, producer_index), &next);
        let ids: Vec<_> = all(&mut ring).into_iter().map(|one| one.id).collect();
        assert_eq!(ids, [number.into(), u64::from(number) + 1]);
        let consumer: u32 = ring_memory.read(offset_of!(QueueHeader, consumer_index));
        assert_eq!(consumer, next);
    }
}

/// Indices that the driver never tells are taken modulo the slots: what is read then
/// is of no request, and there is an end to it.
#[test]
fn strange_indices_lead_nowhere_else() {
    let ring_memory = whole(6);
    let mut ring = completions(&ring_memory, LENGTH).unwrap();
    for producer in [8, 0xdead_beef, LAST - 1, LAST, 1 << 31] {
        for consumer in [0, 3, 9, LAST - 7, LAST] {
            indices(&ring_memory, producer, consumer);
            let between = producer.wrapping_sub(consumer) & 7;
            assert_eq!(all(&mut ring).len(), between as usize);
            assert_eq!(ring.pop(), None);
        }
    }
}

#[test]
fn strange_indices_make_no_room() {
    let [(ring_memory, place), _] = roomy_and_short(size_of::<SendWqe>());
    let mut ring = Sends::map(&ring_memory.uverbs, QUEUES, place).unwrap();
    for producer in [0, 7, 8, 0xdead_beef, LAST] {
        for consumer in [0, 3, 9, LAST - 7, LAST] {
            indices(&ring_memory, producer, consumer);
            let free = (consumer.wrapping_sub(producer).wrapping_sub(1) & 7) as usize;
            assert!(ring.has_room(free) && !ring.has_room(free + 1));
            for _ in 0..free {
                push(&mut ring, 1);
            }
            assert!(!ring.has_room(1));
        }
    }
}

#[test]
fn requests_go_round_in_order() {
    let [(ring_memory, place), _] = roomy_and_short(size_of::<SendWqe>());
    let stride = (place.size as usize - HEAD) / 8;
    let mut ring = Sends::map(&ring_memory.uverbs, QUEUES, place).unwrap();
    let [(of_receives, place), _] = roomy_and_short(size_of::<RecvWqe>() + size_of::<AbiSge>());
    let receive_stride = (place.size as usize - HEAD) / 8;
    let mut receives = Receives::map(&of_receives.uverbs, QUEUES, place).unwrap();
    let sge = AbiSge {
        address: 1,
        length: 2,
        lkey: 3,
    };
    for index in 0..100_u32 {
        let slot = (index % 8) as usize;
        assert!(ring.has_room(7) && !ring.has_room(8) && receives.has_room());
        push(&mut ring, index.into());
        let element: SendWqe = ring_memory.read(HEAD + slot * stride);
        assert_eq!(element.wr.id, u64::from(index));
        receives.push(index.into(), &[sge]);
        let place = HEAD + slot * receive_stride;
        let element: RecvWqe = of_receives.read(place);
        assert_eq!(element.id, u64::from(index));
        let told: AbiSge = of_receives.read(place + size_of::<RecvWqe>());
        assert_eq!(told, sge);
        // The driver takes them.
        for one in [&ring_memory, &of_receives] {
            let producer: u32 = one.read(offset_of!(QueueHeader, producer_index));
            assert_eq!(producer, (index + 1) % 8);
            one.write(offset_of!(QueueHeader, consumer_index), &producer);
        }
    }
}

#[test]
fn atomics_have_their_operands() {
    let [(ring_memory, place), _] = roomy_and_short(size_of::<SendWqe>());
    let stride = (place.size as usize - HEAD) / 8;
    let mut ring = Sends::map(&ring_memory.uverbs, QUEUES, place).unwrap();
    let remote = RemoteMemory::new(0x1008, 8, 7).unwrap();
    let add = SendOperation::FetchAdd { remote, add: 5 };
    let swap = SendOperation::CompareSwap {
        remote,
        compare: 3,
        swap: 4,
    };
    for (slot, (operation, operands)) in [(add, (5, 0)), (swap, (3, 4))].into_iter().enumerate() {
        ring.push(&SendSlot {
            number: 0,
            operation,
            signaled: true,
            solicited: false,
            fence: false,
            payload: SlotPayload::SgList(&[]),
            destination: None,
        });
        let element: SendWqe = ring_memory.read(HEAD + slot * stride);
        let (compare_add, swap) = operands;
        let expected = Target::from_atomic(&AtomicTarget {
            remote_address: 0x1008,
            compare_add,
            swap,
            rkey: 7,
            reserved: Reserved::ZERO,
        });
        assert_eq!(element.wr.target, expected, "{operation:?}");
    }
}

#[test]
fn a_queue_is_empty_when_its_context_has_ended() {
    for round in 0..200 {
        let ring_memory = whole(6);
        for slot in 0..8 {
            ring_memory.write(HEAD + SLOT * slot, &told(7 + slot as u64));
        }
        indices(&ring_memory, round, round + 1);
        let ring = completions(&ring_memory, LENGTH).unwrap();
        read_while_closed(&ring_memory, ring, |one| (7..15).contains(&one.id));
    }
}

#[test]
fn requests_go_nowhere_when_the_context_has_ended() {
    let [(ring_memory, place), _] = roomy_and_short(size_of::<SendWqe>());
    let mut ring = Sends::map(&ring_memory.uverbs, QUEUES, place).unwrap();
    ring_memory.uverbs.close();
    for number in 0..7 {
        assert!(ring.has_room(1));
        push(&mut ring, number);
    }
    assert!(!ring.has_room(1));
    let producer: u32 = ring_memory.read(offset_of!(QueueHeader, producer_index));
    assert_eq!(producer, 0);
}
