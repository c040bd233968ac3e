//! Requests whose doorbell is rung later.

use rdmacm_abi::uverbs::{WcOpcode, WcStatus};

use super::{CAPS, reason, send};
use crate::fork_detector::tests::child_ends_while_locked;
use crate::provider::stub::Stub;
use crate::queue_pair::{QpCaps, QueuePair};
use crate::request::{SendOperation, SendRequest};

/// How many bytes a doorbell is.
fn doorbell(device: &Stub, queue_pair: &QueuePair) -> usize {
    device.command_bytes();
    queue_pair.post_send(send(queue_pair)).unwrap();
    device.command_bytes()
}

#[test]
fn the_doorbell_of_a_queued_request_is_rung_later() {
    let device = Stub::new(true);
    let caps = QpCaps {
        max_send_wr: 4,
        max_inline_data: 2,
        ..CAPS
    };
    let (queue_pair, queue) = device.queue_pair(caps, 8);
    queue_pair.post_send(send(&queue_pair)).unwrap();
    let doorbell = doorbell(&device, &queue_pair);
    let queued = queue_pair.queue_send(send(&queue_pair)).unwrap();
    let work = queued.work();
    assert_eq!(device.command_bytes(), 0);
    assert_eq!(device.sends().len(), 3);
    queued.ring_doorbell().unwrap();
    assert_eq!(device.command_bytes(), doorbell);
    // Also one that is no plain SEND.
    let inline = SendRequest::inline(SendOperation::Send, b"hi");
    let last = queue_pair.queue_send(inline).unwrap();
    let (last_work, none) = (last.work(), device.command_bytes());
    assert_eq!(none, 0);
    assert!(work.is_before(last_work));
    drop(last);
    let refused = queue_pair.queue_send(send(&queue_pair)).unwrap_err();
    assert_eq!(
        reason(&refused.error),
        "the send queue is full: poll completions first"
    );
    assert!(refused.returned.inline.is_none());
    for number in device.sends() {
        device.complete(number, WcStatus::SUCCESS, WcOpcode::SEND);
    }
    let done = std::iter::from_fn(|| queue.poll().unwrap());
    let works: Vec<_> = done.map(|completion| completion.work).collect();
    assert_eq!(works[2..], [work, last_work]);
}

#[test]
fn a_queued_request_whose_doorbell_is_refused_stays_in_the_queue() {
    let device = Stub::new(true);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 4);
    let first = queue_pair.post_send(send(&queue_pair)).unwrap();
    let queued = queue_pair.queue_send(send(&queue_pair)).unwrap();
    let work = queued.work();
    device.refuse(true);
    queued.ring_doorbell().unwrap_err();
    device.refuse(false);
    assert!(queue_pair.is_broken());
    let returned = queue_pair.destroy();
    let works: Vec<_> = returned.iter().map(|(work, _)| *work).collect();
    assert_eq!(works, [first, work]);
}

#[test]
fn a_child_rings_no_doorbell() {
    let device = Stub::new(true);
    let (queue_pair, _queue) = device.queue_pair(CAPS, 4);
    let queued = queue_pair.queue_send(send(&queue_pair)).unwrap();
    device.refuse(true);
    let sends = &queue_pair.sends;
    let ring = || assert!(queued.ring_doorbell().unwrap_err().is_context_closed());
    assert!(child_ends_while_locked(|| sends.lock(), ring));
}
