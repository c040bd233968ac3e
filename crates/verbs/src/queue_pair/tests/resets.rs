//! Queue pairs that are reset.

use std::time::{Duration, Instant};

use rdmacm_abi::uverbs::{WcOpcode, WcStatus};
use rdmacm_core::{QpAttr, QpAttrMask, QpState};
use zerocopy::FromZeros as _;

use super::{CAPS, FULL, memory, reason, send, to};
use crate::provider::stub::Stub;

#[test]
fn a_reset_that_is_refused_changes_nothing() {
    let device = Stub::new(true);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 4);
    queue_pair.post_send(send(&queue_pair)).unwrap();
    let attr = QpAttr {
        qp_state: QpState::RESET,
        ..QpAttr::new_zeroed()
    };
    let refused = || {
        device.refuse(true);
        queue_pair.modify(&attr, QpAttrMask::STATE).unwrap_err();
        device.refuse(false);
    };
    refused();
    assert!(!queue_pair.is_broken());
    // Not a first doorbell again, which would be rung twice.
    let request = send(&queue_pair);
    device.command_bytes();
    queue_pair.post_send(request).unwrap();
    let doorbell = device.command_bytes();
    to(&queue_pair, QpState::RESET);
    let request = send(&queue_pair);
    device.command_bytes();
    queue_pair.post_send(request).unwrap();
    assert_eq!(device.command_bytes(), 2 * doorbell);
    queue_pair.move_to_error().unwrap();
    refused();
    assert!(queue_pair.is_broken());
}

/// After the first one, rxe would still process the slots of discarded requests.
#[test]
fn a_move_that_resets_is_made_twice() {
    for (device, sent) in [(Stub::new(true), 2), (Stub::new(false), 1)] {
        let (queue_pair, _queue) = device.queue_pair(CAPS, 4);
        let bytes_of_move = |state| {
            device.command_bytes();
            to(&queue_pair, state);
            device.command_bytes()
        };
        let one = bytes_of_move(QpState::ERR);
        assert_eq!(bytes_of_move(QpState::RESET), sent * one);
        assert_eq!(bytes_of_move(QpState::INIT), one);
    }
}

/// What is posted after the device has discarded its requests would go to the next peer.
#[test]
fn a_reset_refuses_requests_and_waits_for_those_that_are_being_posted() {
    let device = Stub::new(true);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 4);
    queue_pair.post_send(send(&queue_pair)).unwrap();
    let (request, received) = (send(&queue_pair), memory(&queue_pair));
    let mut several = [Some(send(&queue_pair))];
    device.command_bytes();
    std::thread::scope(|scope| {
        let posting = queue_pair.receives.as_ref().unwrap().lock();
        let reset = scope.spawn(|| to(&queue_pair, QpState::RESET));
        let until = Instant::now() + Duration::from_secs(10);
        while !queue_pair.is_broken() && Instant::now() < until {
            std::thread::yield_now();
        }
        assert!(queue_pair.is_broken(), "it refuses requests");
        assert!(queue_pair.stopping.is_locked(), "another move waits");
        assert!(queue_pair.post_send(request).is_err());
        assert!(queue_pair.post_sends(&mut several).is_err());
        drop(posting);
        reset.join().unwrap();
    });
    assert_eq!(device.sends().len(), 1);
    assert!(!queue_pair.is_broken());
    queue_pair.post_receive(received).unwrap();
    queue_pair.post_send(send(&queue_pair)).unwrap();
}

#[test]
fn a_request_that_was_checked_before_a_reset_is_refused_after_it() {
    let device = Stub::new(true);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 4);
    queue_pair.post_send(send(&queue_pair)).unwrap();
    assert_eq!(queue_pair.sends.reserve_after_check(), Ok(()));
    to(&queue_pair, QpState::RESET);
    let refused = queue_pair.sends.reserve_after_check();
    assert_eq!(refused, Err("the queue pair was reset meanwhile"));
    queue_pair.move_to_error().unwrap();
    let refused = queue_pair.sends.reserve_after_check();
    assert_eq!(refused, Err("the queue pair is in the error state"));
}

#[test]
fn a_doorbell_that_is_refused_after_a_reset_does_not_break_the_queue_pair() {
    let device = Stub::new(true);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 4);
    let discarded = queue_pair.post_send(send(&queue_pair)).unwrap();
    to(&queue_pair, QpState::RESET);
    queue_pair.sends.note_refused_doorbell(discarded.number);
    assert!(!queue_pair.is_broken());
    let work = queue_pair.post_send(send(&queue_pair)).unwrap();
    queue_pair.sends.note_refused_doorbell(discarded.number);
    assert!(!queue_pair.is_broken());
    queue_pair.sends.note_refused_doorbell(work.number);
    assert!(queue_pair.is_broken());
}

#[test]
fn a_reset_that_the_driver_ignores_keeps_the_requests() {
    let device = Stub::new(false);
    let (queue_pair, queue) = device.queue_pair(CAPS, 4);
    let sent = queue_pair.post_send(send(&queue_pair)).unwrap();
    let received = queue_pair.post_receive(memory(&queue_pair)).unwrap();
    queue_pair.post_send(send(&queue_pair)).unwrap();
    queue_pair.post_receive(memory(&queue_pair)).unwrap();
    to(&queue_pair, QpState::RESET);
    // Both queues are still full, and completions find their memory.
    let refused = queue_pair.post_send(send(&queue_pair)).unwrap_err();
    assert_eq!(reason(&refused.error), FULL);
    let refused = queue_pair.post_receive(memory(&queue_pair)).unwrap_err();
    assert_eq!(reason(&refused.error), "the receive queue is full");
    device.complete(device.sends()[0], WcStatus::SUCCESS, WcOpcode::SEND);
    device.complete(device.receives()[0], WcStatus::SUCCESS, WcOpcode::RECV);
    for work in [sent, received] {
        let completion = queue.poll().unwrap().unwrap();
        assert_eq!(completion.work, work);
        assert!(completion.sg_list.into_buffer().is_some());
    }
    to(&queue_pair, QpState::ERR);
    to(&queue_pair, QpState::RESET);
    assert!(queue_pair.is_broken());
    assert_eq!(queue_pair.destroy().len(), 2);
}

#[test]
fn a_reset_that_discards_requests_keeps_their_memory() {
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
    // A late completion of a discarded request is ignored.
    device.complete(device.sends()[0], WcStatus::SUCCESS, WcOpcode::SEND);
    device.complete(device.receives()[0], WcStatus::SUCCESS, WcOpcode::RECV);
    assert!(queue.poll().unwrap().is_none());
    // The queues have space for all requests again.
    for _ in 0..2 {
        works.push(queue_pair.post_send(send(&queue_pair)).unwrap());
        works.push(queue_pair.post_receive(memory(&queue_pair)).unwrap());
    }
    let outstanding = queue_pair.destroy();
    assert!(outstanding.iter().all(|(_, sg_list)| sg_list.len() == 1));
    let outstanding: Vec<_> = outstanding.into_iter().map(|(work, _)| work).collect();
    let [s0, s1, r0, r1, s2, r2, s3, r3] = works[..] else {
        panic!("{works:?}");
    };
    assert_eq!(outstanding, [s1, s2, s3, r1, r2, r3]);
    assert!(![s0, r0].iter().any(|work| outstanding.contains(work)));
}

/// Also if a completion was polled before, so that the others are about to be returned.
#[test]
fn memory_of_receive_requests_is_returned_oldest_first() {
    let device = Stub::new(true);
    let (queue_pair, queue) = device.queue_pair(CAPS, 4);
    let post = || queue_pair.post_receive(memory(&queue_pair)).unwrap();
    let discarded = post();
    to(&queue_pair, QpState::ERR);
    to(&queue_pair, QpState::RESET);
    let [polled, last] = [post(), post()];
    queue_pair.context().close();
    assert_eq!(queue.poll().unwrap().unwrap().work, polled);
    let works: Vec<_> = queue_pair
        .destroy()
        .into_iter()
        .map(|(work, _)| work)
        .collect();
    assert_eq!(works, [discarded, last]);
}
