//! Looking for completions without the lock of their queue.

use std::thread;
use std::time::Instant;

use rdmacm_core::QpType;
use rdmacm_tests::{PATIENCE, Site};
use rdmacm_tests_macros::case;
use rdmacm_verbs::{CompletionQueue, QueuePair, SendOperation, SendRequest};

use super::{ROOMY, brought, room, roomy, sent, sge};

fn send(queue_pair: &QueuePair, byte: u8) {
    let request = SendRequest::new(SendOperation::Send, sge(queue_pair, &[byte]));
    queue_pair.post_send(request).unwrap();
    assert!(sent(queue_pair).result().is_ok());
}

/// Waits for a completion without polling.
#[track_caller]
fn look(queue: &CompletionQueue) {
    let start = Instant::now();
    while !queue.may_have_completions() {
        assert!(start.elapsed() < PATIENCE, "no completion is seen");
        thread::yield_now();
    }
}

#[case]
fn what_the_device_has_written_is_seen(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let queue = server.recv_cq();
    let mut polled = Vec::new();
    // More rounds than the queue has slots.
    for round in 0..2 * queue.entries() + 2 {
        assert!(!queue.may_have_completions());
        server.post_receive(room(server, 1)).unwrap();
        send(client, 1);
        look(queue);
        if round % 2 == 0 {
            assert_eq!(brought(queue.poll().unwrap().unwrap(), 1), [1]);
        } else {
            assert_eq!(queue.poll_many(&mut polled, 4), Ok(1));
        }
    }
    assert!(!queue.may_have_completions());
}

#[case]
fn completions_of_a_queue_pair_that_was_dropped_hide_none(site: &Site) {
    let context = site.verbs();
    let queue = CompletionQueue::options(64).create(&context).unwrap();
    let receiver = || {
        let options = QueuePair::options(QpType::RC)
            .caps(ROOMY)
            .with_completion_channels();
        options.recv_cq(&queue).create(&context).unwrap()
    };
    let [first, second] = [receiver(), receiver()];
    let first = site.pair_of(site.queue_pair_with(ROOMY), first);
    let second = site.pair_of(site.queue_pair_with(ROOMY), second);
    for pair in [&first, &second] {
        let server = &pair.server.queue_pair;
        for _ in 0..2 {
            server.post_receive(room(server, 1)).unwrap();
        }
    }
    send(&first.client.queue_pair, 1);
    send(&first.client.queue_pair, 2);
    look(&queue);
    drop(first);
    send(&second.client.queue_pair, 3);
    look(&queue);
    let completion = queue.poll().unwrap().unwrap();
    assert_eq!(completion.qp_number(), second.server.queue_pair.number());
    assert_eq!(brought(completion, 1), [3]);
}
