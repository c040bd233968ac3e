//! Completion queues, with the device of the tests.

use std::os::unix::net::UnixStream;

use rdmacm_abi::uverbs::{WcOpcode, WcStatus};
use rdmacm_core::QpType;

use super::*;
use crate::completion::WorkId;
use crate::fork_detector::tests::{child_ends, child_ends_while_locked};
use crate::memory::{Buffer, SgList};
use crate::provider::stub::{FIRST_NUMBER, Stub};
use crate::queue_pair::{QpCaps, QueuePair};
use crate::readable;
use crate::request::{SendOperation, SendRequest};
use crate::request_id::RequestId;
use crate::shared_receive_queue::{SharedReceiveQueue, SrqOptions};

mod wait;

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

fn send(queue_pair: &QueuePair) -> WorkId {
    let request = SendRequest::new(SendOperation::Send, memory(queue_pair));
    queue_pair.post_send(request).unwrap()
}

fn refused<T: std::fmt::Debug>(outcome: Result<T>, words: &str) {
    let error = outcome.unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
}

/// A channel, and its other end.
fn channel(context: &Context) -> (CompletionChannel, UnixStream) {
    let (file, far) = readable::tests::file();
    (CompletionChannel::with_file(context, file), far)
}

#[test]
fn a_queue_has_the_requested_properties() {
    let context = Stub::new(false).open();
    let queue = context.create_completion_queue(3).unwrap();
    assert_eq!(queue.entries(), 3);
    assert!(queue.channel().is_none() && *queue.context() == context);
    assert_eq!(context.device_name(), "test0");
    let other = context.create_completion_queue(3).unwrap();
    assert_ne!(queue.token(), other.token());
    let stingy = Stub::with_missing_entries().open();
    refused(stingy.create_completion_queue(3), "smaller than asked for");
}

#[test]
fn a_channel_of_another_context_is_refused() {
    let (context, other) = (Stub::new(false).open(), Stub::new(false).open());
    let (channel, _far) = channel(&context);
    let options = CompletionQueue::options(1).channel(&channel);
    refused(options.create(&other), "of its own context");
    assert!(options.create(&context).unwrap().channel().is_some());
}

#[test]
fn a_queue_is_not_resized_below_its_reserved_entries() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 4);
    send(&queue_pair);
    send(&queue_pair);
    refused(queue.resize(1), "may still come");
    assert_eq!(queue.entries(), 4);
    queue.resize(2).unwrap();
    assert_eq!(queue.entries(), 2);
    queue.resize(9).unwrap();
    assert_eq!(queue.entries(), 9);
}

#[test]
fn several_completions_are_polled_up_to_the_limit() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 4);
    let works = [send(&queue_pair), send(&queue_pair)];
    assert!(!queue.has_completions());
    for number in device.sends() {
        device.complete(number, WcStatus::SUCCESS, WcOpcode::SEND);
    }
    let mut taken = Vec::new();
    assert_eq!(queue.poll_many(&mut taken, 0), Ok(0));
    assert_eq!(queue.poll_many(&mut taken, 1), Ok(1));
    assert_eq!(taken.len(), 1);
    assert!(queue.has_completions());
    assert_eq!(queue.poll_many(&mut taken, usize::MAX), Ok(1));
    assert!(!queue.has_completions());
    assert_eq!(queue.poll_many(&mut taken, 1), Ok(0));
    let taken: Vec<_> = taken.iter().map(|one| one.work).collect();
    assert_eq!(taken, works);
}

#[test]
fn a_stray_completion_is_reported_after_earlier_ones() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 4);
    send(&queue_pair);
    let posted = device.sends()[0];
    device.complete(posted, WcStatus::SUCCESS, WcOpcode::SEND);
    device.complete(posted, WcStatus::SUCCESS, WcOpcode::SEND);
    let mut taken = Vec::new();
    assert_eq!(queue.poll_many(&mut taken, 4), Ok(1));
    let stray = Err(Error::Stray { number: posted });
    assert_eq!(queue.poll_many(&mut taken, 3), stray);
    assert_eq!(queue.poll_many(&mut taken, 3), Ok(0), "once");
    // Of no queue.
    device.complete(u64::MAX, WcStatus::SUCCESS, WcOpcode::SEND);
    assert!(queue.poll().unwrap().is_none());
}

#[test]
fn unknown_numbers_of_a_queue_complete_nothing() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 4);
    let first = send(&queue_pair);
    let second = send(&queue_pair);
    let [posted, next] = device.sends()[..] else {
        panic!("two requests");
    };
    let complete = |number| device.complete(number, WcStatus::SUCCESS, WcOpcode::SEND);
    complete(posted);
    assert_eq!(queue.poll().unwrap().unwrap().work, first);
    for number in [
        posted,
        posted ^ 0x7777,
        posted ^ 0x8000_0000,
        posted ^ 0xffff_ffff,
    ] {
        complete(number);
        assert_eq!(queue.poll().unwrap_err(), Error::Stray { number });
        assert!(queue.poll().unwrap().is_none());
    }
    // The posted request still completes.
    complete(next);
    assert_eq!(queue.poll().unwrap().unwrap().work, second);
}

#[test]
fn an_empty_queue_takes_no_memory_whatever_the_limit() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 1 << 20);
    let mut taken = Vec::new();
    assert_eq!(queue.poll_many(&mut taken, usize::MAX), Ok(0));
    assert!(taken.capacity() < 1024);
    drop(queue_pair);
}

#[test]
fn completions_of_destroyed_queue_pairs_are_skipped() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 4);
    let work = send(&queue_pair);
    let posted = device.sends()[0];
    // Of no place, of a place before it was used again, and of a shared queue.
    for number in [posted + (7 << 32), posted + (1 << 54), u64::MAX, !posted] {
        for _ in 0..100 {
            device.complete(number, WcStatus::SUCCESS, WcOpcode::SEND);
        }
        assert!(queue.poll().unwrap().is_none());
    }
    device.complete(posted, WcStatus::SUCCESS, WcOpcode::SEND);
    assert_eq!(queue.poll().unwrap().unwrap().work, work);
}

#[test]
fn outstanding_requests_are_returned_when_the_device_is_gone() {
    for quiet in [true, false] {
        let device = Stub::new(false);
        let (queue_pair, queue) = device.queue_pair(CAPS, 4);
        let sent = send(&queue_pair);
        let received = queue_pair.post_receive(memory(&queue_pair)).unwrap();
        device.refuse(!quiet);
        queue_pair.context().close();
        let mut taken = Vec::new();
        assert_eq!(queue.poll_many(&mut taken, 4), Ok(2));
        taken.sort_by_key(|one| one.work);
        for (completion, work) in taken.into_iter().zip([sent, received]) {
            assert_eq!(completion.work, work);
            assert_eq!(completion.qp_number(), FIRST_NUMBER + 2);
            let failure = completion.result().unwrap_err();
            assert_eq!(failure.status, WcStatus::FATAL_ERR);
            // The device may still use it if its queue pair was not destroyed.
            assert_eq!(completion.sg_list.len(), usize::from(quiet));
        }
        let gone = queue.poll_many(&mut Vec::new(), 1);
        assert!(gone.unwrap_err().is_context_closed());
        assert!(queue_pair.is_broken());
        device.refuse(false);
    }
}

#[test]
fn requests_beside_those_of_a_flushed_queue_pair_are_returned_when_the_device_is_gone() {
    let device = Stub::not_flushing();
    let context = device.open();
    let queue = context.create_completion_queue(8).unwrap();
    let options = QueuePair::options(QpType::RC).caps(CAPS);
    let options = options.send_cq(&queue).recv_cq(&queue);
    let [flushed, other] = [(); 2].map(|()| options.create(&context).unwrap());
    let work = send(&other);
    let attr = rdmacm_core::QpAttr {
        qp_state: rdmacm_core::QpState::ERR,
        ..zerocopy::FromZeros::new_zeroed()
    };
    let mask = rdmacm_core::QpAttrMask::STATE;
    flushed.modify(&attr, mask).unwrap();
    context.close();
    assert_eq!(queue.poll().unwrap().unwrap().work, work);
    assert!(queue.poll().unwrap_err().is_context_closed());
}

/// What is read from the ring then may be the zeros of one that has replaced it.
#[test]
fn a_flush_after_a_close_takes_what_had_completed() {
    for is_replaced in [true, false] {
        let device = Stub::not_flushing();
        let (queue_pair, queue) = device.queue_pair(CAPS, 4);
        let work = send(&queue_pair);
        let posted = device.sends()[0];
        let number = if is_replaced { 0 } else { posted };
        device.complete(number, WcStatus::SUCCESS, WcOpcode::SEND);
        queue.context().close();
        queue.flush(RequestId::from_device(posted).queue);
        let completion = queue.poll().unwrap().unwrap();
        assert_eq!(completion.work, work);
        assert_eq!(completion.result().is_ok(), !is_replaced);
        assert!(queue.poll().unwrap_err().is_context_closed());
    }
}

#[test]
fn destroying_a_queue_pair_keeps_the_completions_of_others() {
    let device = Stub::new(false);
    let context = device.open();
    let queue = context.create_completion_queue(8).unwrap();
    let options = QueuePair::options(QpType::RC).caps(CAPS);
    let options = options.send_cq(&queue).recv_cq(&queue);
    let [one, other] = [(); 2].map(|()| options.create(&context).unwrap());
    let works = [&one, &other].map(send);
    for number in device.sends() {
        device.complete(number, WcStatus::SUCCESS, WcOpcode::SEND);
    }
    assert_eq!(one.destroy().len(), 1);
    assert_eq!(queue.poll().unwrap().unwrap().work, works[1]);
    assert!(queue.poll().unwrap().is_none());
}

#[test]
fn destroying_a_queue_pair_after_its_device_keeps_those_of_others() {
    let device = Stub::new(false);
    let context = device.open();
    let queue = context.create_completion_queue(8).unwrap();
    let options = QueuePair::options(QpType::RC).caps(CAPS);
    let options = options.send_cq(&queue).recv_cq(&queue);
    let [one, other] = [(); 2].map(|()| options.create(&context).unwrap());
    let mut left: Vec<_> = [&one, &one, &other, &other].map(send).into();
    context.close();
    let first = queue.poll().unwrap().unwrap();
    left.retain(|work| *work != first.work);
    let gone = one.destroy();
    assert_eq!(
        gone.len() + usize::from(first.work.queue == left[0].queue),
        2
    );
    left.retain(|work| gone.iter().all(|(one, _)| one != work));
    let mut rest: Vec<_> = std::iter::from_fn(|| queue.poll().ok()?)
        .map(|one| one.work)
        .collect();
    rest.sort();
    assert_eq!(rest, left);
}

#[test]
fn a_reset_discards_completions_and_keeps_their_memory() {
    let device = Stub::new(true);
    let (queue_pair, queue) = device.queue_pair(CAPS, 4);
    let work = send(&queue_pair);
    device.complete(device.sends()[0], WcStatus::SUCCESS, WcOpcode::SEND);
    let attr = rdmacm_core::QpAttr {
        qp_state: rdmacm_core::QpState::RESET,
        ..zerocopy::FromZeros::new_zeroed()
    };
    queue_pair
        .modify(&attr, rdmacm_core::QpAttrMask::STATE)
        .unwrap();
    assert!(queue.poll().unwrap().is_none());
    let outstanding = queue_pair.destroy();
    assert_eq!(outstanding.len(), 1);
    assert_eq!(outstanding[0].0, work);
}

#[test]
fn a_queue_pair_returns_its_queues() {
    let device = Stub::new(false);
    let context = device.open();
    let domain = context.create_protection_domain().unwrap();
    let [sends, receives] = [(); 2].map(|()| context.create_completion_queue(4).unwrap());
    let (max_wr, max_sge) = (2, 1);
    let shared = SrqOptions { max_wr, max_sge }.create(&domain).unwrap();
    let options = QueuePair::options(QpType::RC).caps(CAPS);
    let options = options.send_cq(&sends).recv_cq(&receives);
    let own = options.create(&context).unwrap();
    let asked = device.last_create_qp().unwrap();
    assert_eq!((asked.send_cq, asked.recv_cq), (1, 2));
    assert_eq!((asked.is_srq, asked.max_recv_wr), (0, CAPS.max_recv_wr));
    assert!(own.shared_receive_queue().is_none());
    let sharing = options.shared_receive_queue(&shared);
    let sharing = sharing.create(&context).unwrap();
    let asked = device.last_create_qp().unwrap();
    assert_eq!((asked.srq, asked.is_srq, asked.max_recv_wr), (3, 1, 0));
    let token = sharing
        .shared_receive_queue()
        .map(SharedReceiveQueue::token);
    assert_eq!(token, Some(shared.token()));
}

#[test]
fn objects_of_different_contexts_are_refused() {
    let (context, other) = (Stub::new(false).open(), Stub::new(false).open());
    let own = "of its own context";
    let queue = other.create_completion_queue(4).unwrap();
    let options = || QueuePair::options(QpType::RC).caps(CAPS);
    refused(options().send_cq(&queue).create(&context), own);
    refused(options().recv_cq(&queue).create(&context), own);
    let domain = other.create_protection_domain().unwrap();
    refused(options().protection_domain(&domain).create(&context), own);
    let (max_wr, max_sge) = (2, 1);
    let shared = SrqOptions { max_wr, max_sge }.create(&domain).unwrap();
    let sharing = options().shared_receive_queue(&shared);
    refused(sharing.create(&context), own);
    let another = other.create_protection_domain().unwrap();
    let sharing = options().shared_receive_queue(&shared);
    let apart = sharing.protection_domain(&another).create(&other);
    refused(apart, "that of its shared receive queue");
    let strange = QueuePair::options(QpType::XRC_INI).create(&context);
    refused(strange, "only RC, UC and UD");
}

#[test]
fn entries_for_a_shared_queue_are_reserved_once_for_all_its_queue_pairs() {
    let device = Stub::new(false);
    let context = device.open();
    let domain = context.create_protection_domain().unwrap();
    let (max_wr, max_sge) = (2, 1);
    let shared = SrqOptions { max_wr, max_sge }.create(&domain).unwrap();
    assert_eq!((shared.capacity(), shared.limit()), (2, Ok(0)));
    let queue = context.create_completion_queue(4).unwrap();
    let options = QueuePair::options(QpType::RC).caps(CAPS);
    let options = options.send_cq(&queue).recv_cq(&queue);
    let options = options.shared_receive_queue(&shared);
    let [one, other] = [(); 2].map(|()| options.create(&context).unwrap());
    assert!(!queue.reserve(3, 0) && queue.reserve(2, 0));
    queue.release(2);
    drop(one);
    assert!(!queue.reserve(3, 0));
    let work = shared.post_receive(memory(&other)).unwrap();
    device.complete(device.receives()[0], WcStatus::SUCCESS, WcOpcode::RECV);
    let outstanding = other.destroy();
    assert_eq!(outstanding.len(), 1);
    assert_eq!(outstanding[0].0, work);
    assert!(queue.reserve(4, 0));
    queue.release(2);
    // Not enough entries are left for all receives.
    let narrow = context.create_completion_queue(1).unwrap();
    refused(options.recv_cq(&narrow).create(&context), "room for all");
}

/// A shared receive queue of four requests, all of them posted, and a completion queue for the
/// queue pairs that use it.
fn shared_queue(context: &Context) -> (SharedReceiveQueue, [WorkId; 4], CompletionQueue) {
    let domain = context.create_protection_domain().unwrap();
    let (max_wr, max_sge) = (4, 1);
    let shared = SrqOptions { max_wr, max_sge }.create(&domain).unwrap();
    let memory = || domain.allocate(8).unwrap();
    let works = [(); 4].map(|()| shared.post_receive(memory()).unwrap());
    let queue = context.create_completion_queue(16).unwrap();
    (shared, works, queue)
}

fn sharing(shared: &SharedReceiveQueue, queue: &CompletionQueue) -> QueuePair {
    sharing_as(QpType::RC, shared, queue)
}

fn sharing_as(qp_type: QpType, shared: &SharedReceiveQueue, queue: &CompletionQueue) -> QueuePair {
    let options = QueuePair::options(qp_type).caps(CAPS);
    let options = options.send_cq(queue).recv_cq(queue);
    let options = options.shared_receive_queue(shared);
    options.create(queue.context()).unwrap()
}

fn works_of(memory: &[(WorkId, SgList)]) -> Vec<WorkId> {
    memory.iter().map(|(work, _)| *work).collect()
}

/// Its number may be that of a queue pair that is created next.
#[test]
fn a_destroyed_queue_pair_takes_its_completions_of_a_shared_queue_with_it() {
    let device = Stub::new(false);
    let context = device.open();
    let (shared, works, queue) = shared_queue(&context);
    let [one, other] = [(); 2].map(|()| sharing(&shared, &queue));
    let posted = device.receives();
    device.complete_receive(posted[1], one.number());
    device.complete_receive(posted[3], other.number());
    device.complete_receive(posted[2], one.number());
    device.complete_receive(posted[0], other.number());
    let memory = one.destroy();
    assert_eq!(works_of(&memory), [works[1], works[2]]);
    assert!(memory.iter().all(|(_, sg_list)| sg_list.len() == 1));
    for work in [works[3], works[0]] {
        let completion = queue.poll().unwrap().unwrap();
        assert_eq!(completion.work, work);
        assert_eq!(completion.qp_number(), other.number());
    }
    assert!(queue.poll().unwrap().is_none());
    // Their places are free again.
    for _ in 0..4 {
        shared.post_receive(SgList::NONE).unwrap();
    }
    assert!(shared.post_receive(SgList::NONE).is_err());
}

/// As one of its own would.
#[test]
fn a_failed_request_of_a_shared_queue_breaks_its_queue_pair_and_no_other() {
    let device = Stub::new(false);
    let context = device.open();
    let (shared, works, queue) = shared_queue(&context);
    let [one, other] = [(); 2].map(|()| sharing(&shared, &queue));
    let posted = device.receives();
    let status = WcStatus::LOC_LEN_ERR;
    device.fail_receive(posted[0], one.number(), status);
    let completion = queue.poll().unwrap().unwrap();
    assert_eq!(completion.work, works[0]);
    assert!(completion.result().is_err());
    assert!(one.is_broken() && !other.is_broken());
    let request = SendRequest::new(SendOperation::Send, SgList::NONE);
    assert!(one.post_send(request).is_err());
    send(&other);
}

/// As those of one with a receive queue of its own.
#[test]
fn a_reset_discards_completions_of_a_shared_queue() {
    let device = Stub::new(true);
    let context = device.open();
    let (shared, works, queue) = shared_queue(&context);
    let [one, other] = [(); 2].map(|()| sharing(&shared, &queue));
    let posted = device.receives();
    device.fail_receive(posted[0], one.number(), WcStatus::LOC_LEN_ERR);
    device.complete_receive(posted[1], other.number());
    let attr = rdmacm_core::QpAttr {
        qp_state: rdmacm_core::QpState::RESET,
        ..zerocopy::FromZeros::new_zeroed()
    };
    one.modify(&attr, rdmacm_core::QpAttrMask::STATE).unwrap();
    assert_eq!(queue.poll().unwrap().unwrap().work, works[1]);
    assert!(queue.poll().unwrap().is_none());
    let sent = send(&one);
    device.complete_receive(posted[2], one.number());
    let memory = one.destroy();
    assert_eq!(works_of(&memory), [sent, works[0], works[2]]);
}

/// Of another queue pair of the queue, and what it has completed itself is not.
#[test]
fn what_had_completed_before_a_close_is_polled_though_a_queue_pair_is_destroyed() {
    let device = Stub::new(false);
    let (one, queue) = device.queue_pair(CAPS, 16);
    let context = queue.context().clone();
    let options = QueuePair::options(QpType::RC).caps(CAPS);
    let options = options.send_cq(&queue).recv_cq(&queue);
    let other = options.create(&context).unwrap();
    let works = [&one, &other, &other].map(|queue_pair| {
        let posted = queue_pair.post_receive(memory(queue_pair));
        posted.unwrap()
    });
    for number in &device.receives()[..2] {
        device.complete(*number, WcStatus::SUCCESS, WcOpcode::RECV);
    }
    context.close();
    assert_eq!(works_of(&one.destroy()), works[..1]);
    for (work, has_succeeded) in works[1..].iter().zip([true, false]) {
        let completion = queue.poll().unwrap().unwrap();
        assert_eq!(completion.work, *work);
        assert_eq!(completion.result().is_ok(), has_succeeded);
    }
    assert!(queue.poll().unwrap_err().is_context_closed());
}

#[test]
fn a_failed_request_of_a_shared_queue_breaks_the_queue_pair_that_the_device_has_stopped() {
    for (qp_type, status, breaks) in [
        (QpType::RC, WcStatus::REM_INV_REQ_ERR, true),
        (QpType::UC, WcStatus::LOC_QP_OP_ERR, true),
        (QpType::UD, WcStatus::LOC_QP_OP_ERR, true),
        (QpType::UD, WcStatus::REM_INV_REQ_ERR, false),
    ] {
        let device = Stub::new(false);
        let context = device.open();
        let (shared, _, queue) = shared_queue(&context);
        let queue_pair = sharing_as(qp_type, &shared, &queue);
        device.fail_receive(device.receives()[0], queue_pair.number(), status);
        assert!(queue.poll().unwrap().unwrap().result().is_err());
        assert_eq!(queue_pair.is_broken(), breaks, "{qp_type:?}, {status:?}");
    }
}

/// On another thread, one is created between the kernel's part of destroying and the rest.
#[test]
fn a_queue_pair_that_has_the_number_of_one_that_is_being_destroyed_keeps_its_completions() {
    let device = Stub::new(false);
    let context = device.open();
    let (shared, works, queue) = shared_queue(&context);
    let one = sharing(&shared, &queue);
    let (index, number) = (shared.index(), one.number());
    let posted = device.receives();
    device.complete_receive(posted[0], number);
    assert!(queue.admit_shared(shared.queue(), shared.capacity()));
    queue.admit_number(index, number, QpType::RC, &Arc::default());
    device.complete_receive(posted[1], number);
    let memory = one.destroy();
    assert_eq!(works_of(&memory), works[..1]);
    assert_eq!(queue.poll().unwrap().unwrap().work, works[1]);
    device.complete_receive(posted[2], number);
    let memory = queue.dismiss(index, Some(number));
    assert_eq!(works_of(&memory), works[2..3]);
    assert!(queue.poll().unwrap().is_none());
}

/// A thread that polls at the fork is not in the child, where it would release the lock.
#[test]
fn a_child_waits_for_no_thread_that_polls() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 4);
    let context = queue.context().clone();
    send(&queue_pair);
    queue_pair.post_receive(memory(&queue_pair)).unwrap();
    let options = QueuePair::options(QpType::RC).send_cq(&queue);
    let own = queue.clone();
    let has_ended = child_ends_while_locked(
        || own.state().unwrap(),
        || {
            assert!(queue.has_completions());
            assert!(queue.poll().unwrap_err().is_context_closed());
            assert!(
                queue
                    .poll_many(&mut Vec::new(), 1)
                    .unwrap_err()
                    .is_context_closed()
            );
            assert!(queue.resize(9).unwrap_err().is_context_closed());
            assert!(options.create(&context).unwrap_err().is_context_closed());
            assert!(queue_pair.destroy().is_empty());
            drop((queue, options, context));
        },
    );
    assert!(has_ended);
}

/// Also if no thread was polling, which the child cannot know.
#[test]
fn a_child_polls_nothing_that_was_outstanding() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 4);
    let memory = memory(&queue_pair);
    let freed = memory.free_probe();
    queue_pair.post_receive(memory).unwrap();
    let has_ended = child_ends(|| {
        assert!(queue.poll().unwrap_err().is_context_closed());
        assert!(
            queue
                .poll_many(&mut Vec::new(), 1)
                .unwrap_err()
                .is_context_closed()
        );
        drop((queue_pair, queue));
        assert!(!freed());
    });
    assert!(has_ended);
}
