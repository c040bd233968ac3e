//! Work queues with the device of the tests.

use rdmacm_abi::AhAttr;
use rdmacm_abi::uverbs::{WcOpcode, WcStatus};
use rdmacm_core::{QpAttr, QpAttrMask, QpState, QpType};
use zerocopy::FromZeros;

use crate::completion::WorkId;
use crate::completion_queue::CompletionQueue;
use crate::memory::{Buffer, RemoteMemory, SgList};
use crate::protection_domain::ProtectionDomain;
use crate::provider::stub::Stub;
use crate::queue_pair::{QpCaps, QueuePair};
use crate::request::{SendOperation, SendRequest};

const CAPS: QpCaps = QpCaps {
    max_send_wr: 4,
    max_recv_wr: 2,
    max_send_sge: 2,
    max_recv_sge: 2,
    max_inline_data: 0,
};

fn memory(queue_pair: &QueuePair) -> Buffer {
    queue_pair.protection_domain().allocate(8).unwrap()
}

fn request(queue_pair: &QueuePair) -> SendRequest<'static> {
    SendRequest::new(SendOperation::Send, memory(queue_pair))
}

fn send(queue_pair: &QueuePair) -> WorkId {
    queue_pair.post_send(request(queue_pair)).unwrap()
}

fn send_unsignaled(queue_pair: &QueuePair) -> WorkId {
    let request = request(queue_pair).unsignaled();
    queue_pair.post_send(request).unwrap()
}

fn complete(device: &Stub, index: usize, status: WcStatus) {
    device.complete(device.sends()[index], status, WcOpcode::SEND);
}

/// Polls all completions.
fn poll_all(queue: &CompletionQueue) -> Vec<WorkId> {
    let polled = std::iter::from_fn(|| queue.poll().unwrap());
    polled.map(|completion| completion.work).collect()
}

#[test]
fn several_requests_are_posted_together_or_not_at_all() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 8);
    let mut requests: Vec<_> = (0..5).map(|_| Some(request(&queue_pair))).collect();
    queue_pair.post_sends(&mut requests).unwrap_err();
    assert!(requests.iter().all(Option::is_some));
    assert!(device.sends().is_empty());
    drop(requests[2].take());
    let works = queue_pair.post_sends(&mut requests).unwrap();
    assert_eq!(works.len(), 4);
    assert!(requests.iter().all(Option::is_none));
    complete(&device, 3, WcStatus::SUCCESS);
    assert_eq!(poll_all(&queue), works.collect::<Vec<_>>());
}

#[test]
fn posting_no_requests_does_nothing() {
    let device = Stub::new(false);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 8);
    let request = request(&queue_pair);
    // As if it were not connected.
    device.refuse(true);
    assert_eq!(queue_pair.post_sends(&mut []).unwrap().len(), 0);
    assert_eq!(queue_pair.post_sends(&mut [None, None]).unwrap().len(), 0);
    assert!(!queue_pair.is_broken());
    device.refuse(false);
    queue_pair.post_send(request).unwrap();
    device.command_bytes();
    assert_eq!(queue_pair.post_sends(&mut [None]).unwrap().len(), 0);
    assert_eq!(device.command_bytes(), 0);
}

#[test]
fn each_post_rings_the_doorbell() {
    let device = Stub::new(false);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 8);
    for _ in 0..2 {
        device.command_bytes();
        let work = request(&queue_pair);
        device.command_bytes();
        queue_pair.post_send(work).unwrap();
        assert_ne!(device.command_bytes(), 0);
    }
}

#[test]
fn a_refused_doorbell_returns_the_first_request_and_breaks_the_queue_pair_later() {
    let device = Stub::new(false);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 8);
    let (first, second) = (request(&queue_pair), request(&queue_pair));
    device.refuse(true);
    let refused = queue_pair.post_send(first).unwrap_err();
    assert!(refused.returned.is_some() && device.sends().is_empty());
    device.refuse(false);
    queue_pair.post_send(refused.returned.unwrap()).unwrap();
    device.refuse(true);
    let broken = queue_pair.post_send(second).unwrap_err();
    assert!(broken.returned.is_none(), "the device may have it");
    assert!(queue_pair.is_broken());
    device.refuse(false);
    assert_eq!(queue_pair.destroy().len(), 2);
}

#[test]
fn reads_are_refused_if_the_connection_allows_none() {
    let remote = RemoteMemory::new(0x1000, 8, 7).unwrap();
    let read = |queue_pair: &QueuePair| {
        let request = SendRequest::new(SendOperation::Read(remote), memory(queue_pair));
        let posted = queue_pair.post_send(request);
        posted
            .map(drop)
            .map_err(|refused| refused.error.to_string())
    };
    let device = Stub::with_depth(0);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 8);
    let refused = read(&queue_pair).unwrap_err();
    assert!(refused.contains("allows no reads"), "{refused}");
    let device = Stub::with_depth(1);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 8);
    send(&queue_pair);
    let bytes = [(); 3].map(|()| {
        device.command_bytes();
        read(&queue_pair).unwrap();
        device.command_bytes()
    });
    assert!(bytes[0] > bytes[1], "only the first queries the queue pair");
    assert_eq!(bytes[1], bytes[2]);
}

#[test]
fn a_signaled_request_completes_earlier_unsignaled_ones() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 8);
    let first = send(&queue_pair);
    let unsignaled = [(); 3].map(|()| send_unsignaled(&queue_pair));
    complete(&device, 0, WcStatus::SUCCESS);
    assert_eq!(poll_all(&queue), [first]);
    // No signalled request is left, and the last entry is reserved for one.
    let refused = queue_pair.post_send(request(&queue_pair).unsignaled());
    let words = refused.unwrap_err().to_string();
    assert!(
        words.contains("needs at least one signalled request"),
        "{words}"
    );
    let last = send(&queue_pair);
    complete(&device, 4, WcStatus::SUCCESS);
    assert_eq!(poll_all(&queue), [&unsignaled[..], &[last]].concat());
}

#[test]
fn a_completion_completes_earlier_signaled_requests() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 8);
    let works = [(); 3].map(|()| send(&queue_pair));
    complete(&device, 2, WcStatus::SUCCESS);
    assert_eq!(poll_all(&queue), works);
    for _ in 0..3 {
        send_unsignaled(&queue_pair);
    }
    let refused = queue_pair.post_send(request(&queue_pair).unsignaled());
    assert!(refused.is_err(), "none of the four would be reported");
}

#[test]
fn a_failed_unsignaled_request_is_reported() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 8);
    let work = send_unsignaled(&queue_pair);
    complete(&device, 0, WcStatus::LOC_PROT_ERR);
    let completion = queue.poll().unwrap().unwrap();
    assert_eq!(completion.work, work);
    let failure = completion.result().unwrap_err();
    assert_eq!(
        (failure.status, failure.work),
        (WcStatus::LOC_PROT_ERR, work)
    );
    assert!(queue_pair.is_broken());
}

#[test]
fn individual_completions_are_reported_in_order() {
    let device = Stub::completing_individually();
    let (queue_pair, queue) = device.queue_pair(CAPS, 8);
    let works = [
        send(&queue_pair),
        send_unsignaled(&queue_pair),
        send(&queue_pair),
    ];
    complete(&device, 2, WcStatus::SUCCESS);
    assert_eq!(poll_all(&queue), []);
    complete(&device, 0, WcStatus::SUCCESS);
    assert_eq!(poll_all(&queue), works[..1]);
    complete(&device, 1, WcStatus::SUCCESS);
    assert_eq!(poll_all(&queue), works[1..]);
    send_unsignaled(&queue_pair);
    complete(&device, 3, WcStatus::SUCCESS);
    assert_eq!(poll_all(&queue), [], "it is unsignalled");
}

/// Moves a queue pair to ERR.
fn fail(queue_pair: &QueuePair) {
    let error = QpAttr {
        qp_state: QpState::ERR,
        ..QpAttr::new_zeroed()
    };
    queue_pair.modify(&error, QpAttrMask::STATE).unwrap();
}

/// Polls all completions, with their statuses.
fn statuses(queue: &CompletionQueue) -> Vec<(WorkId, WcStatus)> {
    let polled = std::iter::from_fn(|| queue.poll().unwrap());
    let statuses = polled.map(|one| {
        assert_eq!(one.sg_list.len(), 1);
        let failure = one.result().err();
        let status = failure.map_or(WcStatus::SUCCESS, |failure| failure.status);
        (one.work, status)
    });
    statuses.collect()
}

#[test]
fn requests_that_do_not_complete_in_err_are_flushed_after_the_others() {
    let device = Stub::not_flushing();
    let (queue_pair, queue) = device.queue_pair(CAPS, 8);
    let sends = [
        send(&queue_pair),
        send_unsignaled(&queue_pair),
        send_unsignaled(&queue_pair),
    ];
    let receives = [(); 2].map(|()| queue_pair.post_receive(memory(&queue_pair)).unwrap());
    complete(&device, 0, WcStatus::SUCCESS);
    complete(&device, 2, WcStatus::SUCCESS);
    device.complete(device.receives()[0], WcStatus::WR_FLUSH_ERR, WcOpcode::RECV);
    fail(&queue_pair);
    let expected = [
        (sends[0], WcStatus::SUCCESS),
        (sends[1], WcStatus::WR_FLUSH_ERR),
        (sends[2], WcStatus::SUCCESS),
        (receives[0], WcStatus::WR_FLUSH_ERR),
        (receives[1], WcStatus::WR_FLUSH_ERR),
    ];
    assert_eq!(statuses(&queue), expected);
    assert!(queue_pair.post_send(request(&queue_pair)).is_err());
    assert!(queue_pair.post_receive(memory(&queue_pair)).is_err());
    assert!(queue_pair.destroy().is_empty());
}

#[test]
fn flushed_requests_may_complete_late_and_keep_their_entries() {
    let device = Stub::not_flushing();
    let (queue_pair, queue) = device.queue_pair(CAPS, 8);
    send(&queue_pair);
    queue_pair.post_receive(memory(&queue_pair)).unwrap();
    fail(&queue_pair);
    assert_eq!(statuses(&queue).len(), 2);
    complete(&device, 0, WcStatus::WR_FLUSH_ERR);
    queue.resize(1).unwrap_err();
    assert!(queue.poll().unwrap().is_none());
    queue.resize(1).unwrap();
    device.complete(device.receives()[0], WcStatus::WR_FLUSH_ERR, WcOpcode::RECV);
    assert!(queue.poll().unwrap().is_none());
    queue.resize(0).unwrap();
    complete(&device, 0, WcStatus::WR_FLUSH_ERR);
    assert!(queue.poll().is_err(), "it was reported before");
}

#[test]
fn a_device_that_flushes_all_completes_the_requests() {
    let device = Stub::completing_individually();
    let (queue_pair, queue) = device.queue_pair(CAPS, 8);
    let work = send(&queue_pair);
    fail(&queue_pair);
    assert_eq!(statuses(&queue), []);
    complete(&device, 0, WcStatus::WR_FLUSH_ERR);
    assert_eq!(statuses(&queue), [(work, WcStatus::WR_FLUSH_ERR)]);
}

#[test]
fn entries_of_flushed_requests_are_released_with_the_queue_pair() {
    let device = Stub::not_flushing();
    let (queue_pair, queue) = device.queue_pair(CAPS, 8);
    send(&queue_pair);
    queue_pair.post_receive(memory(&queue_pair)).unwrap();
    fail(&queue_pair);
    queue.resize(1).unwrap_err();
    drop(queue_pair);
    queue.resize(0).unwrap();
}

#[test]
fn empty_entries_are_skipped_but_counted() {
    let device = Stub::new(false);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 8);
    let empty = || memory(&queue_pair).slice(3..3).unwrap();
    let sg_list: SgList = vec![empty(), empty(), empty()].into();
    let refused = queue_pair.post_receive(sg_list).unwrap_err();
    assert!(
        refused
            .error
            .to_string()
            .contains("more scatter/gather entries")
    );
    let sg_list: SgList = vec![empty(), memory(&queue_pair).into()].into();
    let request = SendRequest::new(SendOperation::Send, sg_list);
    queue_pair.post_send(request).unwrap();
    assert_eq!(device.sg_lists(), [[8]]);
}

#[test]
fn a_datagram_has_a_destination_and_a_connection_has_none() {
    let device = Stub::new(false);
    let context = device.open();
    let domain = context.create_protection_domain().unwrap();
    let create = |qp_type| {
        let options = QueuePair::options(qp_type).caps(CAPS);
        options.protection_domain(&domain).create(&context).unwrap()
    };
    let address_handle = |domain: &ProtectionDomain| {
        let handle = domain.create_address_handle(AhAttr::default());
        handle.unwrap()
    };
    let refused = |queue_pair: &QueuePair, request: SendRequest<'_>| {
        let refused = queue_pair.post_send(request).unwrap_err();
        refused.error.to_string()
    };
    let (datagrams, connection) = (create(QpType::UD), create(QpType::RC));
    let missing = refused(&datagrams, request(&datagrams));
    assert!(missing.contains("needs a destination"), "{missing}");
    let own = address_handle(&domain);
    let twice = refused(&connection, request(&connection).destination(&own, 5, 6));
    assert!(twice.contains("has no destination"), "{twice}");
    let other = address_handle(&context.create_protection_domain().unwrap());
    let others = refused(&datagrams, request(&datagrams).destination(&other, 5, 6));
    assert!(others.contains("another protection domain"), "{others}");
    let posted = datagrams.post_send(request(&datagrams).destination(&own, 5, 6));
    let work = posted.unwrap();
    drop(own);
    device.command_bytes();
    complete(&device, 0, WcStatus::SUCCESS);
    assert_eq!(poll_all(datagrams.send_cq()), [work]);
    assert!(
        device.command_bytes() > 0,
        "the handle lives as long as the request"
    );
}

#[test]
fn several_receives_are_posted_together_or_not_at_all() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 2);
    let mut memories: Vec<SgList> = (0..3).map(|_| memory(&queue_pair).into()).collect();
    let full = queue_pair.post_receives(&mut memories).unwrap_err();
    assert!(full.to_string().contains("full"), "{full}");
    assert_eq!((memories.len(), device.receives().len()), (3, 0));
    memories[0].push(memory(&queue_pair).into());
    memories[0].push(memory(&queue_pair).into());
    memories.pop();
    let long = queue_pair.post_receives(&mut memories).unwrap_err();
    assert!(
        long.to_string().contains("more scatter/gather entries"),
        "{long}"
    );
    memories[0] = SgList::NONE;
    let works = queue_pair.post_receives(&mut memories).unwrap();
    assert_eq!((works.len(), memories.len()), (2, 0));
    for number in device.receives() {
        device.complete(number, WcStatus::SUCCESS, WcOpcode::RECV);
    }
    assert_eq!(poll_all(&queue), works.collect::<Vec<_>>());
    assert_eq!(queue_pair.post_receives(&mut memories).unwrap().len(), 0);
}
