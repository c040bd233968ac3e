//! Requests that a test's device has.

use rdmacm_abi::AhAttr;
use rdmacm_abi::uverbs::{WcOpcode, WcStatus};
use rdmacm_core::QpType;

use crate::completion::WorkId;
use crate::completion_queue::CompletionQueue;
use crate::memory::{Buffer, RemoteMemory};
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

fn silent(queue_pair: &QueuePair) -> WorkId {
    let request = request(queue_pair).unsignaled();
    queue_pair.post_send(request).unwrap()
}

fn complete(device: &Stub, place: usize, status: WcStatus) {
    device.complete(device.sends()[place], status, WcOpcode::SEND);
}

/// The works that are told of, each behind the earlier ones it tells of.
fn told(queue: &CompletionQueue) -> Vec<WorkId> {
    let mut works = Vec::new();
    while let Some(completion) = queue.poll().unwrap() {
        works.extend(completion.earlier.iter().map(|(work, _)| *work));
        works.push(completion.work);
    }
    works
}

#[test]
fn several_requests_are_posted_together_or_not_at_all() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 8);
    let requests = |count| (0..count).map(|_| request(&queue_pair)).collect();
    let refused = queue_pair.post_sends(requests(5)).unwrap_err();
    assert_eq!(refused.returned.len(), 5);
    assert!(device.sends().is_empty());
    let works = queue_pair.post_sends(requests(4)).unwrap();
    assert_eq!(works.len(), 4);
    complete(&device, 3, WcStatus::SUCCESS);
    assert_eq!(told(&queue), works);
}

#[test]
fn the_device_is_rung_for() {
    let device = Stub::new(false);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 8);
    for _ in 0..2 {
        device.told_bytes();
        let work = request(&queue_pair);
        device.told_bytes();
        queue_pair.post_send(work).unwrap();
        assert_ne!(device.told_bytes(), 0);
    }
}

#[test]
fn a_device_that_is_not_reached_takes_nothing_at_first_and_is_broken_later() {
    let device = Stub::new(false);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 8);
    let (first, second) = (request(&queue_pair), request(&queue_pair));
    device.refuse(true);
    let refused = queue_pair.post_send(first).unwrap_err();
    assert!(refused.returned.is_some() && device.sends().is_empty());
    device.refuse(false);
    queue_pair.post_send(refused.returned.unwrap()).unwrap();
    device.refuse(true);
    let stuck = queue_pair.post_send(second).unwrap_err();
    assert!(stuck.returned.is_none(), "the device may have it");
    assert!(queue_pair.is_broken());
    device.refuse(false);
    assert_eq!(queue_pair.destroy().len(), 2);
}

#[test]
fn reads_are_refused_where_the_connection_allows_none() {
    let remote = RemoteMemory::new(0x1000, 8, 7).unwrap();
    let read = |queue_pair: &QueuePair| {
        let request = SendRequest::new(SendOperation::Read(remote), memory(queue_pair));
        let posted = queue_pair.post_send(request);
        posted
            .map(drop)
            .map_err(|refused| refused.error.to_string())
    };
    let device = Stub::of_depth(0);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 8);
    let refused = read(&queue_pair).unwrap_err();
    assert!(refused.contains("allows no reads"), "{refused}");
    let device = Stub::of_depth(1);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 8);
    send(&queue_pair);
    let bytes = [(); 3].map(|()| {
        device.told_bytes();
        read(&queue_pair).unwrap();
        device.told_bytes()
    });
    assert!(bytes[0] > bytes[1], "the first asks");
    assert_eq!(bytes[1], bytes[2]);
}

#[test]
fn one_that_will_be_told_of_brings_the_silent_ones_back() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 8);
    let first = send(&queue_pair);
    let silents = [(); 3].map(|()| silent(&queue_pair));
    complete(&device, 0, WcStatus::SUCCESS);
    assert_eq!(told(&queue), [first]);
    // None is left that will be told of, and the last place is for one.
    let refused = queue_pair.post_send(request(&queue_pair).unsignaled());
    assert!(refused.is_err());
    let last = send(&queue_pair);
    complete(&device, 4, WcStatus::SUCCESS);
    assert_eq!(told(&queue), [&silents[..], &[last]].concat());
}

#[test]
fn those_that_were_skipped_are_told_of_no_more() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 8);
    let works = [(); 3].map(|()| send(&queue_pair));
    complete(&device, 2, WcStatus::SUCCESS);
    assert_eq!(told(&queue), works);
    for _ in 0..3 {
        silent(&queue_pair);
    }
    let refused = queue_pair.post_send(request(&queue_pair).unsignaled());
    assert!(refused.is_err(), "none of the four would be told of");
}

#[test]
fn a_silent_request_that_fails_is_told_of() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 8);
    let work = silent(&queue_pair);
    complete(&device, 0, WcStatus::LOC_PROT_ERR);
    let completion = queue.poll().unwrap().unwrap();
    assert_eq!(completion.work, work);
    let failure = completion.result.unwrap_err();
    assert_eq!(
        (failure.status, failure.work),
        (WcStatus::LOC_PROT_ERR, work)
    );
    assert!(queue_pair.is_broken());
}

#[test]
fn where_requests_are_done_one_by_one_each_waits_for_those_before_it() {
    let device = Stub::apart();
    let (queue_pair, queue) = device.queue_pair(CAPS, 8);
    let works = [send(&queue_pair), silent(&queue_pair), send(&queue_pair)];
    complete(&device, 2, WcStatus::SUCCESS);
    assert_eq!(told(&queue), []);
    complete(&device, 0, WcStatus::SUCCESS);
    assert_eq!(told(&queue), works[..1]);
    complete(&device, 1, WcStatus::SUCCESS);
    assert_eq!(told(&queue), works[1..]);
    silent(&queue_pair);
    complete(&device, 3, WcStatus::SUCCESS);
    assert_eq!(told(&queue), [], "it is silent");
}

#[test]
fn pieces_without_bytes_are_left_out_and_counted() {
    let device = Stub::new(false);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 8);
    let empty = || memory(&queue_pair).part(3..3).unwrap();
    let pieces: crate::memory::Pieces = vec![empty(), empty(), empty()].into();
    let refused = queue_pair.post_receive(pieces).unwrap_err();
    assert!(refused.error.to_string().contains("more pieces"));
    let pieces: crate::memory::Pieces = vec![empty(), memory(&queue_pair).into()].into();
    let request = SendRequest::new(SendOperation::Send, pieces);
    queue_pair.post_send(request).unwrap();
    assert_eq!(device.pieces(), [[8]]);
}

#[test]
fn a_datagram_has_a_destination_and_a_connection_has_none() {
    let device = Stub::new(false);
    let context = device.open();
    let domain = context.create_protection_domain().unwrap();
    let make = |qp_type| {
        let options = QueuePair::options(qp_type).caps(CAPS);
        options.protection_domain(&domain).create(&context).unwrap()
    };
    let way = |domain: &ProtectionDomain| {
        let handle = domain.create_address_handle(AhAttr::default());
        handle.unwrap()
    };
    let refused = |queue_pair: &QueuePair, request: SendRequest<'_>| {
        let refused = queue_pair.post_send(request).unwrap_err();
        refused.error.to_string()
    };
    let (datagrams, connection) = (make(QpType::UD), make(QpType::RC));
    let nowhere = refused(&datagrams, request(&datagrams));
    assert!(nowhere.contains("needs a destination"), "{nowhere}");
    let here = way(&domain);
    let twice = refused(&connection, request(&connection).to(&here, 5, 6));
    assert!(twice.contains("has its destination already"), "{twice}");
    let other = way(&context.create_protection_domain().unwrap());
    let others = refused(&datagrams, request(&datagrams).to(&other, 5, 6));
    assert!(others.contains("another protection domain"), "{others}");
    let posted = datagrams.post_send(request(&datagrams).to(&here, 5, 6));
    posted.unwrap();
}
