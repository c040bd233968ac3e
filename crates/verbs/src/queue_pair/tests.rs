//! Queue pairs, with the device of the tests.

use rdmacm_abi::uverbs::{WcOpcode, WcStatus};
use rdmacm_core::{Gid, QpAttr, QpAttrMask, QpState, QpType, Transport};
use zerocopy::FromZeros;

use super::{QpCaps, QueuePair};
use crate::completion_queue::CompletionQueue;
use crate::error::Error;
use crate::fork_detector::tests::child_ends_while_locked;
use crate::memory::{Buffer, RemoteMemory, SgList};
use crate::provider::stub::{FIRST_NUMBER, Stub};
use crate::request::{SendOperation, SendRequest};
use crate::shared_receive_queue::SrqOptions;

mod queued_sends;
mod resets;

const CAPS: QpCaps = QpCaps {
    max_send_wr: 2,
    max_recv_wr: 2,
    max_send_sge: 1,
    max_recv_sge: 1,
    max_inline_data: 0,
};

fn memory(queue_pair: &QueuePair) -> Buffer {
    queue_pair.protection_domain().allocate(8).unwrap()
}

fn send(queue_pair: &QueuePair) -> SendRequest<'static> {
    SendRequest::new(SendOperation::Send, memory(queue_pair))
}

fn to(queue_pair: &QueuePair, state: QpState) {
    let attr = QpAttr {
        qp_state: state,
        ..QpAttr::new_zeroed()
    };
    queue_pair.modify(&attr, QpAttrMask::STATE).unwrap();
}

fn reason(error: &Error) -> &'static str {
    match error {
        Error::InvalidInput { reason, .. } => reason,
        other => panic!("{other}"),
    }
}

#[test]
fn a_queue_pair_has_the_requested_properties() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 4);
    let known: &dyn rdmacm_core::QueuePair = &queue_pair;
    assert_eq!(queue_pair.number(), FIRST_NUMBER + 2);
    assert_eq!(known.number(), FIRST_NUMBER + 2);
    assert_eq!(
        (queue_pair.qp_type(), queue_pair.caps()),
        (QpType::RC, CAPS)
    );
    assert_eq!(queue_pair.send_cq().token(), queue.token());
    assert_eq!(queue_pair.recv_cq().token(), queue.token());
    assert!(queue_pair.shared_receive_queue().is_none() && !known.has_srq());
    assert_eq!(known.transport(), Transport::RoCE);
}

/// siw may complete a read twice.
#[test]
fn a_queue_of_its_own_has_room_for_a_request_that_completes_twice() {
    for (device, more) in [(Stub::new(false), 0), (Stub::completing_individually(), 1)] {
        let context = device.open();
        let queue_pair = QueuePair::options(QpType::RC).caps(CAPS);
        let queue_pair = queue_pair.create(&context).unwrap();
        let queues = [queue_pair.send_cq(), queue_pair.recv_cq()];
        assert_eq!(queues.map(CompletionQueue::entries), [2 + more, 2]);
    }
}

#[test]
fn a_queue_pair_smaller_than_requested_is_refused() {
    let context = Stub::with_missing_entries().open();
    let options = QueuePair::options(QpType::RC).caps(CAPS);
    let error = options.create(&context).unwrap_err();
    assert!(
        error.to_string().contains("smaller than asked for"),
        "{error}"
    );
}

#[test]
fn a_move_to_the_error_state_that_is_refused_changes_nothing() {
    let device = Stub::new(false);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 4);
    let refused = |error| {
        device.refuse(true);
        assert_eq!(queue_pair.move_to_error().is_err(), error);
        device.refuse(false);
    };
    refused(true);
    assert!(!queue_pair.is_broken());
    queue_pair.post_send(send(&queue_pair)).unwrap();
    queue_pair.move_to_error().unwrap();
    assert!(queue_pair.is_broken());
    refused(true);
    assert!(queue_pair.is_broken());
}

#[test]
fn requests_that_need_not_be_reported_are_not_outstanding() {
    for (device, last) in [(Stub::new(true), 0), (Stub::completing_individually(), 1)] {
        let (queue_pair, _queue) = device.queue_pair(CAPS, 4);
        assert_eq!(queue_pair.outstanding_sends(), 0);
        queue_pair.post_send(send(&queue_pair)).unwrap();
        assert_eq!(queue_pair.outstanding_sends(), 1);
        queue_pair
            .post_send(send(&queue_pair).unsignaled())
            .unwrap();
        assert_eq!(queue_pair.outstanding_sends(), 1 + last);
        queue_pair.post_receive(memory(&queue_pair)).unwrap();
        assert_eq!(queue_pair.outstanding_receives(), 1);
    }
}

#[test]
fn receive_requests_are_outstanding_until_their_completions_are_polled() {
    let fail: [fn(&QueuePair); 2] = [
        |queue_pair| queue_pair.move_to_error().unwrap(),
        |queue_pair| queue_pair.send_cq().context().close(),
    ];
    for fail in fail {
        let device = Stub::not_flushing();
        let (queue_pair, queue) = device.queue_pair(CAPS, 4);
        for _ in 0..2 {
            queue_pair.post_receive(memory(&queue_pair)).unwrap();
        }
        fail(&queue_pair);
        for left in [2, 1] {
            assert_eq!(queue_pair.outstanding_receives(), left);
            queue.poll().unwrap().unwrap().result().unwrap_err();
        }
        assert_eq!(queue_pair.outstanding_receives(), 0);
    }
}

/// The device may complete its requests when other queue pairs have been made and destroyed.
#[test]
fn the_requests_of_a_queue_pair_that_is_not_destroyed_stay_its_own() {
    let device = Stub::new(false);
    let context = device.open();
    let queue = context.create_completion_queue(8).unwrap();
    let options = QueuePair::options(QpType::RC).caps(CAPS);
    let options = options.recv_cq(&queue);
    let create = || options.create(&context).unwrap();
    let queue_pair = create();
    queue_pair.post_receive(memory(&queue_pair)).unwrap();
    let number = queue_pair.number();
    device.refuse(true);
    drop(queue_pair);
    device.refuse(false);
    // As many as there are indices of a place.
    for _ in 0..510 {
        drop(create());
        device.command_bytes();
    }
    let queue_pair = create();
    queue_pair.post_receive(memory(&queue_pair)).unwrap();
    let [first, second] = device.receives().try_into().unwrap();
    device.complete_receive(first, number);
    assert!(queue.poll().unwrap().is_none());
    assert!(queue.reserve(6, 0) && !queue.reserve(1, 0));
    device.complete_receive(second, queue_pair.number());
    assert!(queue.poll().unwrap().is_some());
    assert!(queue.reserve(1, 0) && !queue.reserve(1, 0));
}

#[test]
fn a_child_waits_for_no_thread_that_posts() {
    let device = Stub::new(false);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 4);
    let receives = queue_pair.receives.as_ref().unwrap();
    let fail = || assert!(queue_pair.move_to_error().unwrap_err().is_context_closed());
    assert!(child_ends_while_locked(|| receives.lock(), fail));
}

#[test]
fn only_an_iwarp_connection_that_is_drained_is_broken() {
    for (transport, broken) in [(Transport::IWarp, true), (Transport::RoCE, false)] {
        let device = Stub::with_transport(transport);
        let (queue_pair, _queue) = device.queue_pair(CAPS, 4);
        to(&queue_pair, QpState::RTS);
        assert!(!queue_pair.is_broken());
        to(&queue_pair, QpState::SQD);
        assert_eq!(queue_pair.is_broken(), broken);
    }
}

#[test]
fn a_broken_queue_pair_refuses_requests() {
    let device = Stub::new(false);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 4);
    to(&queue_pair, QpState::ERR);
    let refused = queue_pair.post_send(send(&queue_pair)).unwrap_err();
    assert_eq!(
        reason(&refused.error),
        "the queue pair is in the error state"
    );
    let refused = queue_pair.post_receive(memory(&queue_pair)).unwrap_err();
    assert_eq!(
        reason(&refused.error),
        "the queue pair is in the error state"
    );
}

#[test]
fn only_an_attached_group_is_detached() {
    let device = Stub::new(false);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 4);
    let group = Gid([0xff; 16]);
    let left = |lid| queue_pair.detach(group, lid);
    assert_eq!(
        reason(&left(1).unwrap_err()),
        "it is not attached to this group"
    );
    queue_pair.attach(group, 1).unwrap();
    queue_pair.attach(group, 1).unwrap();
    assert!(left(2).is_err() && left(1).is_ok() && left(1).is_err());
}

#[test]
fn invalid_requests_are_refused() {
    let device = Stub::new(false);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 8);
    let refused = |operation, sg_list: SgList| {
        let request = SendRequest::new(operation, sg_list);
        let refused = queue_pair.post_send(request).unwrap_err();
        reason(&refused.error)
    };
    let short = RemoteMemory::new(0x1000, 7, 7).unwrap();
    let whole = || memory(&queue_pair).into();
    let shorter = "the peer's memory is shorter than this side's";
    for operation in [
        SendOperation::Write(short),
        SendOperation::WriteWithImmediate(short, 1),
        SendOperation::Read(short),
    ] {
        assert_eq!(refused(operation, whole()), shorter);
    }
    let remote = RemoteMemory::new(0x1000, 8, 7).unwrap();
    let swap = SendOperation::CompareSwap {
        remote,
        compare: 0,
        swap: 1,
    };
    let half = queue_pair.protection_domain().allocate(4).unwrap();
    let one = "an atomic operation takes one scatter/gather entry of 8 bytes";
    assert_eq!(refused(swap, half.into()), one);
    assert_eq!(refused(swap, SgList::NONE), one);
    let [first, second] = [(); 2].map(|()| memory(&queue_pair));
    let mut two = SgList::from(first);
    two.push(second.into());
    let many = "it has more scatter/gather entries than the queue pair allows";
    assert_eq!(refused(SendOperation::Send, two), many);
    let other = Stub::new(false).open().create_protection_domain().unwrap();
    let others = other.allocate(8).unwrap();
    let domain = "its memory is registered in another protection domain";
    assert_eq!(refused(SendOperation::Send, others.into()), domain);
}

/// A queue pair of this transport with room for four send requests.
fn of_four_sends(transport: Transport) -> (QueuePair, CompletionQueue) {
    let caps = QpCaps {
        max_send_wr: 4,
        ..CAPS
    };
    Stub::with_transport(transport).queue_pair(caps, 8)
}

/// On siw a hostile peer could write behind it.
#[test]
fn siw_does_not_read_into_memory_of_the_allocator() {
    for (transport, is_refused) in [(Transport::IWarp, true), (Transport::RoCE, false)] {
        let (queue_pair, _queue) = of_four_sends(transport);
        let remote = RemoteMemory::new(0x1000, 8, 7).unwrap();
        let post = |operation, memory: Buffer| {
            let posted = queue_pair.post_send(SendRequest::new(operation, memory));
            posted.is_err()
        };
        let boxed = || queue_pair.protection_domain().register([7; 8]).unwrap();
        assert_eq!(post(SendOperation::Read(remote), boxed()), is_refused);
        assert!(!post(SendOperation::Read(remote), memory(&queue_pair)));
        assert!(!post(SendOperation::Write(remote), boxed()));
    }
}

/// On siw a hostile peer could write to the other part, which this process uses.
#[test]
fn siw_does_not_read_into_a_part_beside_others() {
    for (transport, is_refused) in [(Transport::IWarp, true), (Transport::RoCE, false)] {
        let (queue_pair, _queue) = of_four_sends(transport);
        let remote = RemoteMemory::new(0x1000, 8, 7).unwrap();
        let read = |memory: Buffer| {
            let read = SendRequest::new(SendOperation::Read(remote), memory);
            queue_pair.post_send(read).is_err()
        };
        let split = || {
            let mut buffer = queue_pair.protection_domain().allocate(16).unwrap();
            let rest = buffer.split_off(8);
            (buffer, rest)
        };
        let (part, rest) = split();
        assert_eq!(read(part), is_refused);
        assert_eq!(*rest, [0; 8]);
        let (part, rest) = split();
        drop(part);
        assert!(!read(rest));
    }
}

#[test]
fn queues_without_entries_take_no_memory() {
    let device = Stub::new(false);
    let caps = QpCaps {
        max_send_sge: 0,
        max_recv_sge: 0,
        ..CAPS
    };
    let (queue_pair, _queue) = device.queue_pair(caps, 8);
    let many = "it has more scatter/gather entries than the queue pair allows";
    let refused = queue_pair.post_send(send(&queue_pair)).unwrap_err();
    assert_eq!(reason(&refused.error), many);
    let refused = queue_pair.post_receive(memory(&queue_pair)).unwrap_err();
    assert!(reason(&refused.error).starts_with("it has more scatter/gather entries"));
    queue_pair.post_receive(SgList::NONE).unwrap();
}

#[test]
fn inline_data_is_limited_and_only_sent() {
    let device = Stub::new(false);
    let caps = QpCaps {
        max_inline_data: 4,
        ..CAPS
    };
    let (queue_pair, _queue) = device.queue_pair(caps, 8);
    let remote = RemoteMemory::new(0x1000, 8, 7).unwrap();
    let post = |operation, bytes: &'static [u8]| {
        let outcome = queue_pair.post_send(SendRequest::inline(operation, bytes));
        outcome.map_err(|refused| reason(&refused.error))
    };
    assert!(post(SendOperation::Send, b"four").is_ok());
    let more = post(SendOperation::Send, b"five!").unwrap_err();
    assert!(more.contains("longer than QpCaps::max_inline_data"));
    let read = post(SendOperation::Read(remote), b"four");
    assert_eq!(read.unwrap_err(), "the result needs registered memory");
}

#[test]
fn a_later_completion_releases_the_entries_of_earlier_requests() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 2);
    for round in 1..4 {
        let silent = queue_pair.post_send(send(&queue_pair).unsignaled());
        let silent = silent.unwrap();
        let work = queue_pair.post_send(send(&queue_pair)).unwrap();
        let last = device.sends()[2 * round - 1];
        device.complete(last, WcStatus::SUCCESS, WcOpcode::SEND);
        let works = [(); 2].map(|()| queue.poll().unwrap().unwrap().work);
        assert_eq!(works, [silent, work]);
    }
}

const FULL: &str = "the send queue is full: poll completions first";
const NO_ROOM: &str = "the completion queue has no room left for its completion";

#[test]
fn completions_release_their_entries() {
    let device = Stub::new(false);
    // One entry for each queue, repeatedly.
    let (queue_pair, queue) = device.queue_pair(CAPS, 2);
    for round in 0..8 {
        queue_pair.post_send(send(&queue_pair)).unwrap();
        queue_pair.post_receive(memory(&queue_pair)).unwrap();
        let refused = queue_pair.post_receive(memory(&queue_pair)).unwrap_err();
        assert_eq!(reason(&refused.error), NO_ROOM);
        let refused = queue_pair.post_send(send(&queue_pair)).unwrap_err();
        assert_eq!(reason(&refused.error), NO_ROOM);
        device.complete(device.sends()[round], WcStatus::SUCCESS, WcOpcode::SEND);
        assert!(queue.poll().unwrap().is_some());
        device.complete(device.receives()[round], WcStatus::SUCCESS, WcOpcode::RECV);
        assert!(queue.poll().unwrap().is_some());
    }
}

#[test]
fn a_destroyed_queue_pair_releases_its_entries() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 2);
    queue_pair.post_send(send(&queue_pair)).unwrap();
    queue_pair.post_receive(memory(&queue_pair)).unwrap();
    assert!(!queue.reserve(1, 0));
    assert_eq!(queue_pair.destroy().len(), 2);
    assert!(queue.reserve(2, 0));
}

#[test]
fn queue_pairs_without_receive_requests_leave_no_places_behind() {
    let device = Stub::new(false);
    let caps = QpCaps {
        max_recv_wr: 0,
        ..CAPS
    };
    let (queue_pair, queue) = device.queue_pair(caps, 4);
    let refused = queue_pair.post_receive(memory(&queue_pair)).unwrap_err();
    assert_eq!(
        reason(&refused.error),
        "the queue pair has no receive queue"
    );
    let options = QueuePair::options(QpType::RC).caps(caps);
    let options = options.send_cq(&queue).recv_cq(&queue);
    for _ in 0..10 {
        drop(options.create(queue_pair.context()).unwrap());
    }
    let places = [(); 2].map(|()| queue.reserve_index().unwrap().slot());
    assert!(places.iter().all(|place| *place <= 2), "{places:?}");
}

#[test]
fn a_queue_is_not_filled_with_unsignaled_requests() {
    let device = Stub::new(false);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 8);
    let silent = || send(&queue_pair).unsignaled();
    queue_pair.post_send(silent()).unwrap();
    let refused = queue_pair.post_send(silent()).unwrap_err();
    let full = "a full send queue needs at least one signalled request";
    assert_eq!(reason(&refused.error), full);
    queue_pair.post_send(send(&queue_pair)).unwrap();
    assert_eq!(device.sends().len(), 2);
}

#[test]
fn atomics_are_aligned() {
    let device = Stub::new(false);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 8);
    let add = |address| {
        let remote = RemoteMemory::new(address, 8, 7).unwrap();
        let add = SendOperation::FetchAdd { remote, add: 1 };
        SendRequest::new(add, memory(&queue_pair))
    };
    for address in [0x1001, 0x1002, 0x1004, 0x1007] {
        let refused = queue_pair.post_send(add(address)).unwrap_err();
        assert_eq!(
            reason(&refused.error),
            "the peer's memory is not aligned to 8 bytes"
        );
    }
    queue_pair.post_send(add(0x1008)).unwrap();
}

/// After a change of one thread's credentials, the kernel does not destroy the queue pair, but
/// lets another thread deregister the rest of the buffer.
#[test]
fn memory_in_use_by_a_queue_pair_is_kept_with_the_rest_of_the_buffer() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 4);
    let mut part = queue_pair.protection_domain().allocate(16).unwrap();
    let rest = part.split_off(8);
    let is_freed = rest.free_probe();
    queue_pair.post_receive(part).unwrap();
    let context = queue_pair.context().clone();
    device.refuse(true);
    drop(queue_pair);
    device.refuse(false);
    drop(rest);
    assert!(!is_freed());
    drop((queue, context));
    assert!(is_freed());
}

#[test]
fn memory_in_use_by_a_shared_queue_is_kept_with_the_rest_of_the_buffer() {
    let device = Stub::new(false);
    let context = device.open();
    let domain = context.create_protection_domain().unwrap();
    let (max_wr, max_sge) = (2, 1);
    let shared = SrqOptions { max_wr, max_sge }.create(&domain).unwrap();
    let mut part = domain.allocate(16).unwrap();
    let rest = part.split_off(8);
    let is_freed = rest.free_probe();
    shared.post_receive(part).unwrap();
    device.refuse(true);
    drop(shared);
    device.refuse(false);
    drop(rest);
    assert!(!is_freed());
    drop((domain, context));
    assert!(is_freed());
}
