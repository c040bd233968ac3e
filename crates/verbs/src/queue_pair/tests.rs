//! Queue pairs whose device a test is.

use rdmacm_abi::uverbs::{WcOpcode, WcStatus};
use rdmacm_core::{QpAttr, QpAttrMask, QpState};
use zerocopy::FromZeros;

use super::{QpCaps, QueuePair};
use crate::error::Error;
use crate::memory::{Buffer, RemoteMemory};
use crate::provider::stub::Stub;
use crate::request::{SendOperation, SendRequest};
use crate::shared_receive_queue::SrqOptions;

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

const FULL: &str = "the send queue is full: take completions first";
const NO_ROOM: &str = "the completion queue has no room left for its completion";

#[test]
fn a_reset_that_changes_nothing_gives_nothing_up() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 4);
    let sent = queue_pair.post_send(send(&queue_pair)).unwrap();
    let room = queue_pair.post_receive(memory(&queue_pair)).unwrap();
    queue_pair.post_send(send(&queue_pair)).unwrap();
    queue_pair.post_receive(memory(&queue_pair)).unwrap();
    to(&queue_pair, QpState::RESET);
    // Neither queue has more room, and what comes finds its memory.
    let refused = queue_pair.post_send(send(&queue_pair)).unwrap_err();
    assert_eq!(reason(&refused.error), FULL);
    let refused = queue_pair.post_receive(memory(&queue_pair)).unwrap_err();
    assert_eq!(reason(&refused.error), "the receive queue is full");
    device.complete(device.sends()[0], WcStatus::SUCCESS, WcOpcode::SEND);
    device.complete(device.receives()[0], WcStatus::SUCCESS, WcOpcode::RECV);
    for work in [sent, room] {
        let completion = queue.poll().unwrap().unwrap();
        assert_eq!(completion.work, work);
        assert!(completion.pieces.into_buffer().is_some());
    }
    to(&queue_pair, QpState::ERR);
    to(&queue_pair, QpState::RESET);
    assert!(queue_pair.is_broken());
    assert_eq!(queue_pair.destroy().len(), 2);
}

#[test]
fn a_reset_that_forgets_keeps_the_memory() {
    let device = Stub::new(true);
    let (queue_pair, queue) = device.queue_pair(CAPS, 4);
    let mut works = Vec::new();
    for _ in 0..2 {
        works.push(queue_pair.post_send(send(&queue_pair)).unwrap());
    }
    for _ in 0..2 {
        works.push(queue_pair.post_receive(memory(&queue_pair)).unwrap());
    }
    to(&queue_pair, QpState::ERR);
    to(&queue_pair, QpState::RESET);
    assert!(!queue_pair.is_broken());
    // What the device was doing just then is told later, and of no concern.
    device.complete(device.sends()[0], WcStatus::SUCCESS, WcOpcode::SEND);
    device.complete(device.receives()[0], WcStatus::SUCCESS, WcOpcode::RECV);
    assert!(queue.poll().unwrap().is_none());
    // There is room again, for all.
    for _ in 0..2 {
        works.push(queue_pair.post_send(send(&queue_pair)).unwrap());
        works.push(queue_pair.post_receive(memory(&queue_pair)).unwrap());
    }
    let outstanding = queue_pair.destroy();
    assert!(outstanding.iter().all(|(_, pieces)| pieces.len() == 1));
    let outstanding: Vec<_> = outstanding.into_iter().map(|(work, _)| work).collect();
    let [s0, s1, r0, r1, s2, r2, s3, r3] = works[..] else {
        panic!("{works:?}");
    };
    assert_eq!(outstanding, [s1, s2, s3, r1, r2, r3]);
    assert!(![s0, r0].iter().any(|work| outstanding.contains(work)));
}

#[test]
fn completions_return_their_room() {
    let device = Stub::new(false);
    // One entry for either queue, again and again.
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
fn a_destroyed_queue_pair_returns_its_room() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 2);
    queue_pair.post_send(send(&queue_pair)).unwrap();
    queue_pair.post_receive(memory(&queue_pair)).unwrap();
    assert!(!queue.set_aside(1, 0));
    assert_eq!(queue_pair.destroy().len(), 2);
    assert!(queue.set_aside(2, 0));
}

#[test]
fn a_queue_is_not_filled_with_what_nobody_reports() {
    let device = Stub::new(false);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 8);
    let silent = || send(&queue_pair).unsignaled();
    queue_pair.post_send(silent()).unwrap();
    let refused = queue_pair.post_send(silent()).unwrap_err();
    let full = "the send queue would be full of requests without a completion";
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
            "the peer's 8 bytes are not aligned to 8"
        );
    }
    queue_pair.post_send(add(0x1008)).unwrap();
}

/// What the kernel does after a change of one thread's credentials: it does not destroy
/// the queue pair, but lets another thread deregister what is left of the buffer.
#[test]
fn what_a_queue_pair_may_use_is_kept_whoever_has_the_rest() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 4);
    let mut part = queue_pair.protection_domain().allocate(16).unwrap();
    let rest = part.split_off(8);
    let is_freed = rest.grave();
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
fn what_a_shared_queue_may_use_is_kept_whoever_has_the_rest() {
    let device = Stub::new(false);
    let context = device.open();
    let domain = context.create_protection_domain().unwrap();
    let (max_wr, max_sge) = (2, 1);
    let shared = SrqOptions { max_wr, max_sge }.create(&domain).unwrap();
    let mut part = domain.allocate(16).unwrap();
    let rest = part.split_off(8);
    let is_freed = rest.grave();
    shared.post_receive(part).unwrap();
    device.refuse(true);
    drop(shared);
    device.refuse(false);
    drop(rest);
    assert!(!is_freed());
    drop((domain, context));
    assert!(is_freed());
}
