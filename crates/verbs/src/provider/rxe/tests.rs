//! Queues that a test accesses as the driver does.

mod queue_entries;

use std::mem::offset_of;

use rdmacm_abi::Reserved;
use rdmacm_abi::uverbs::rxe::{AtomicTarget, MapInfo, QueueHeader, RecvWqe, SendWqe, Target};
use rdmacm_abi::uverbs::{SendFlags, Sge as AbiSge, WcStatus, WorkCompletion};
use rdmacm_core::QpType;
use zerocopy::FromZeros;

use super::{Queue, Rxe};
use crate::error::Result;
use crate::memory::RemoteMemory;
use crate::operation::Operation;
use crate::provider::ring_memory::{
    RingMemory, assert_invalid_queue, poll_all, poll_while_closing, push,
};
use crate::provider::{CompletionRing, ReceiveRing, SendRing, SendSlot, SlotPayload};
use crate::request::SendOperation;

const HEADER: usize = size_of::<QueueHeader>();
const COMPLETIONS: Operation = Operation::CreateCompletionQueue { entries: 7 };
const QUEUES: Operation = Operation::CreateQueuePair(QpType::RC);
const LAST: u32 = u32::MAX;

/// A queue in the driver's layout.
fn queue(log2_elem_size: u32, index_mask: u32, length: usize) -> RingMemory {
    let ring_memory = RingMemory::new(length, Rxe);
    let mut header = QueueHeader::new_zeroed();
    header.log2_elem_size = log2_elem_size;
    header.index_mask = index_mask;
    ring_memory.write(0, &header);
    ring_memory
}

/// A queue with eight slots.
fn eight_slots(log2_elem_size: u32) -> RingMemory {
    queue(log2_elem_size, 7, HEADER + (8 << log2_elem_size))
}

fn info(size: usize) -> MapInfo {
    MapInfo {
        offset: 0,
        size: size.try_into().unwrap(),
        padding: Reserved::ZERO,
    }
}

fn completions(ring_memory: &RingMemory, length: usize) -> Result<Queue<WorkCompletion>> {
    Queue::map(&ring_memory.uverbs, COMPLETIONS, info(length))
}

const SLOT: usize = 64;
const LENGTH: usize = HEADER + 8 * SLOT;

fn indices(ring_memory: &RingMemory, producer: u32, consumer: u32) {
    ring_memory.write(offset_of!(QueueHeader, producer_index), &producer);
    ring_memory.write(offset_of!(QueueHeader, consumer_index), &consumer);
}

fn completed(id: u64) -> WorkCompletion {
    WorkCompletion {
        id,
        status: WcStatus::SUCCESS,
        ..WorkCompletion::new_zeroed()
    }
}

#[test]
fn invalid_headers_are_refused() {
    assert!(completions(&eight_slots(6), LENGTH).is_ok());
    for (log2_elem_size, index_mask) in [
        // Slot sizes that are not a multiple of 8, or too large.
        (0, 7),
        (2, 7),
        (62, 7),
        (63, 7),
        (64, 7),
        (LAST, 7),
        // Slots shorter than an element.
        (3, 7),
        (5, 7),
        // Slot counts that are not a power of two.
        (6, 4),
        (6, 6),
        (6, LAST - 1),
        // More slots than a number or the mapping holds.
        (6, LAST),
        (6, 15),
        (6, LAST / 2),
        (7, 7),
    ] {
        let ring_memory = queue(log2_elem_size, index_mask, LENGTH);
        let outcome = completions(&ring_memory, LENGTH);
        assert!(outcome.is_err(), "{log2_elem_size}, {index_mask}");
        assert_invalid_queue(outcome);
    }
}

#[test]
fn a_mapping_that_is_too_short_is_refused() {
    for length in [8, HEADER - 1, HEADER, HEADER + 8, LENGTH - 1] {
        assert_invalid_queue(completions(&eight_slots(6), length));
    }
    assert_eq!(
        completions(&eight_slots(6), 0).unwrap_err().raw_os_error(),
        Some(libc::EINVAL)
    );
}

/// A queue whose slots hold this many bytes, and one with slots of half the size.
fn large_and_small_slots(bytes: usize) -> [(RingMemory, MapInfo); 2] {
    let log2 = bytes.next_power_of_two().trailing_zeros();
    [log2, log2 - 1].map(|log2| (eight_slots(log2), info(HEADER + (8 << log2))))
}

#[test]
fn slots_smaller_than_an_element_are_refused() {
    let [(ring_memory, info), (short, short_info)] = large_and_small_slots(size_of::<SendWqe>());
    assert!(Queue::<SendWqe>::map(&ring_memory.uverbs, QUEUES, info).is_ok());
    assert_invalid_queue(Queue::<SendWqe>::map(&short.uverbs, QUEUES, short_info));
    let [(ring_memory, info), (short, short_info)] = large_and_small_slots(size_of::<RecvWqe>());
    assert!(Queue::<RecvWqe>::map(&ring_memory.uverbs, QUEUES, info).is_ok());
    assert_invalid_queue(Queue::<RecvWqe>::map(&short.uverbs, QUEUES, short_info));
}

#[test]
fn completions_are_polled_in_order() {
    let ring_memory = eight_slots(6);
    let mut ring = completions(&ring_memory, LENGTH).unwrap();
    assert_eq!((ring.capacity(), ring.pop()), (7, None));
    let hint = ring.hint().unwrap();
    for number in 1..100_u32 {
        // Two at a time.
        let slots = [2 * number, 2 * number + 1].map(|index| index % 8);
        indices(&ring_memory, slots[0], slots[0]);
        let watch = hint.watch(0);
        assert!(!watch.has_any());
        for (slot, id) in slots.into_iter().zip(number.into()..) {
            ring_memory.write(HEADER + SLOT * slot as usize, &completed(id));
        }
        let next = (slots[1] + 1) % 8;
        ring_memory.write(offset_of!(QueueHeader, producer_index), &next);
        assert!(watch.has_any() && hint.watch(0).has_any());
        let ids: Vec<_> = poll_all(&mut ring).into_iter().map(|one| one.id).collect();
        assert_eq!(ids, [number.into(), u64::from(number) + 1]);
        assert!(!hint.watch(0).has_any());
        let consumer: u32 = ring_memory.read(offset_of!(QueueHeader, consumer_index));
        assert_eq!(consumer, next);
    }
}

/// Invalid indices are taken modulo the number of slots: polling returns completions of no
/// request, and ends.
#[test]
fn polling_with_invalid_indices_ends() {
    let ring_memory = eight_slots(6);
    let mut ring = completions(&ring_memory, LENGTH).unwrap();
    for producer in [8, 0xdead_beef, LAST - 1, LAST, 1 << 31] {
        for consumer in [0, 3, 9, LAST - 7, LAST] {
            indices(&ring_memory, producer, consumer);
            let between = producer.wrapping_sub(consumer) & 7;
            assert_eq!(poll_all(&mut ring).len(), between as usize);
            assert_eq!(ring.pop(), None);
        }
    }
}

#[test]
fn invalid_indices_free_no_slots() {
    let [(ring_memory, info), _] = large_and_small_slots(size_of::<SendWqe>());
    let mut ring = Queue::<SendWqe>::map(&ring_memory.uverbs, QUEUES, info).unwrap();
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
fn requests_are_posted_in_order() {
    let [(ring_memory, info), _] = large_and_small_slots(size_of::<SendWqe>());
    let stride = (info.size as usize - HEADER) / 8;
    let mut ring = Queue::<SendWqe>::map(&ring_memory.uverbs, QUEUES, info).unwrap();
    let [(receive_memory, info), _] =
        large_and_small_slots(size_of::<RecvWqe>() + size_of::<AbiSge>());
    let receive_stride = (info.size as usize - HEADER) / 8;
    let mut receives = Queue::<RecvWqe>::map(&receive_memory.uverbs, QUEUES, info).unwrap();
    let sge = AbiSge {
        address: 1,
        length: 2,
        lkey: 3,
    };
    for index in 0..100_u32 {
        let slot = (index % 8) as usize;
        assert!(ring.has_room(7) && !ring.has_room(8) && receives.has_room());
        push(&mut ring, index.into());
        let element: SendWqe = ring_memory.read(HEADER + slot * stride);
        assert_eq!(element.wr.id, u64::from(index));
        receives.push(index.into(), &[sge]);
        let info = HEADER + slot * receive_stride;
        let element: RecvWqe = receive_memory.read(info);
        assert_eq!(element.id, u64::from(index));
        let written: AbiSge = receive_memory.read(info + size_of::<RecvWqe>());
        assert_eq!(written, sge);
        // The driver consumes them.
        for one in [&ring_memory, &receive_memory] {
            let producer: u32 = one.read(offset_of!(QueueHeader, producer_index));
            assert_eq!(producer, (index + 1) % 8);
            one.write(offset_of!(QueueHeader, consumer_index), &producer);
        }
    }
}

#[test]
fn atomics_have_their_operands() {
    let [(ring_memory, info), _] = large_and_small_slots(size_of::<SendWqe>());
    let stride = (info.size as usize - HEADER) / 8;
    let mut ring = Queue::<SendWqe>::map(&ring_memory.uverbs, QUEUES, info).unwrap();
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
            operation: &operation,
            flags: SendFlags::SIGNALED,
            payload: SlotPayload::SgList(&[]),
            destination: None,
        });
        let element: SendWqe = ring_memory.read(HEADER + slot * stride);
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
fn polling_ends_when_the_context_is_closed() {
    for round in 0..200 {
        let ring_memory = eight_slots(6);
        for slot in 0..8 {
            ring_memory.write(HEADER + SLOT * slot, &completed(7 + slot as u64));
        }
        indices(&ring_memory, round, round + 1);
        let ring = completions(&ring_memory, LENGTH).unwrap();
        poll_while_closing(&ring_memory, ring, |one| (7..15).contains(&one.id));
    }
}

#[test]
fn requests_are_discarded_after_the_context_is_closed() {
    let [(ring_memory, info), _] = large_and_small_slots(size_of::<SendWqe>());
    let mut ring = Queue::<SendWqe>::map(&ring_memory.uverbs, QUEUES, info).unwrap();
    ring_memory.uverbs.close();
    for number in 0..7 {
        assert!(ring.has_room(1));
        push(&mut ring, number);
    }
    assert!(!ring.has_room(1));
    let producer: u32 = ring_memory.read(offset_of!(QueueHeader, producer_index));
    assert_eq!(producer, 0);
}
