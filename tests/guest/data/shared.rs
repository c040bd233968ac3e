//! Queues that several queue pairs share.

use std::collections::{HashMap, HashSet};

use rdmacm_core::QpType;
use rdmacm_tests::{PATIENCE, Pair, Site, Soft};
use rdmacm_verbs::{
    AsyncEvent, AsyncEventKind, AsyncEventSource, CompletionQueue, Error, Operation, QueuePair,
    SendOperation, SendRequest, SgList, SharedReceiveQueue, SrqOptions,
};

use super::{ROOMY, brought, next, received, room, roomy, sent, sge};
use crate::newer_commands;
use rdmacm_tests_macros::case;

/// A queue pair with a shared receive queue and a send completion queue of its own.
fn receiver(site: &Site, requests: u32) -> (SharedReceiveQueue, QueuePair) {
    let context = site.verbs();
    let domain = context.create_protection_domain().unwrap();
    let options = SrqOptions {
        max_wr: requests,
        max_sge: 1,
    };
    let shared = options.create(&domain).unwrap();
    let options = QueuePair::options(QpType::RC)
        .caps(ROOMY)
        .with_completion_channels();
    let options = options.protection_domain(&domain);
    let queue_pair = options.shared_receive_queue(&shared).create(&context);
    (shared, queue_pair.unwrap())
}

fn send(queue_pair: &QueuePair, bytes: &[u8]) {
    let request = SendRequest::new(SendOperation::Send, sge(queue_pair, bytes));
    queue_pair.post_send(request).unwrap();
    assert!(sent(queue_pair).result().is_ok());
}

#[case]
fn two_queue_pairs_receive_from_one_queue(site: &Site) {
    let (shared, first) = receiver(site, 8);
    let options = QueuePair::options(QpType::RC)
        .with_completion_channels()
        .caps(ROOMY);
    let options = options.protection_domain(first.protection_domain());
    let second = options
        .shared_receive_queue(&shared)
        .create(first.context());
    let pairs = [first, second.unwrap()].map(|queue_pair| {
        let client = site.queue_pair_with(ROOMY);
        site.pair_of(client, queue_pair)
    });
    for pair in &pairs {
        let refused = pair.server.queue_pair.post_receive(SgList::NONE);
        let words = refused.unwrap_err().to_string();
        assert!(words.contains("post there"), "{words}");
    }
    for round in 0..20 {
        let posted: Vec<_> = (0..4)
            .map(|_| {
                let room = room(&pairs[0].server.queue_pair, 8);
                shared.post_receive(room).unwrap()
            })
            .collect();
        let mut works = Vec::new();
        for (pair, number) in pairs.iter().cycle().zip(0..4) {
            send(&pair.client.queue_pair, &[round, number]);
            let came = received(&pair.server.queue_pair);
            assert_eq!(came.qp_number(), pair.server.queue_pair.number());
            works.push(came.work);
            assert_eq!(brought(came, 2), [round, number]);
        }
        assert_eq!(works, posted);
    }
    // The others work after one is destroyed.
    let [first, second] = pairs;
    for _ in 0..2 {
        let room = room(&second.server.queue_pair, 8);
        shared.post_receive(room).unwrap();
    }
    assert!(first.server.queue_pair.destroy().is_empty());
    send(&second.client.queue_pair, b"on");
    assert_eq!(brought(received(&second.server.queue_pair), 2), b"on");
    while shared.post_receive(SgList::NONE).is_ok() {}
    let refused = shared.post_receive(SgList::NONE).unwrap_err();
    assert!(refused.to_string().contains("queue is full"), "{refused}");
}

#[case]
fn a_queue_that_runs_low_is_reported(site: &Site) {
    let (shared, server) = receiver(site, 8);
    let events = server.context().async_events().unwrap();
    let pair = site.pair_of(site.queue_pair_with(ROOMY), server);
    let server = &pair.server.queue_pair;
    for _ in 0..4 {
        shared.post_receive(room(server, 8)).unwrap();
    }
    shared.set_limit(3).unwrap();
    assert_eq!(shared.limit(), Ok(3));
    for _ in 0..2 {
        send(&pair.client.queue_pair, b"x");
        assert!(received(server).result().is_ok());
    }
    let event = loop {
        let event = events.next(PATIENCE).unwrap().unwrap();
        if event.kind == AsyncEventKind::SRQ_LIMIT_REACHED {
            break event;
        }
    };
    assert_eq!(
        event.source,
        AsyncEventSource::SharedReceiveQueue(shared.token())
    );
    let limit = match site.soft {
        Soft::Rxe => 0,
        // The limit remains as set, and is reported only once.
        Soft::Siw => 3,
    };
    assert_eq!(shared.limit(), Ok(limit));
    let error = shared.set_limit(u32::MAX).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
}

/// The last event of a queue pair that fails with a shared queue. rxe of newer kernels
/// reports it; older ones and siw do not.
#[case]
fn last_wqe_reached_is_reported_by_drivers_that_support_it(site: &Site) {
    let (shared, first) = receiver(site, 8);
    let events = first.context().async_events().unwrap();
    let options = QueuePair::options(QpType::RC)
        .with_completion_channels()
        .caps(ROOMY);
    let options = options.protection_domain(first.protection_domain());
    let options = options.shared_receive_queue(&shared);
    let second = options.create(first.context()).unwrap();
    let [first, second] = [first, second].map(|queue_pair| {
        let client = site.queue_pair_with(ROOMY);
        site.pair_of(client, queue_pair)
    });
    let ended = first.server.queue_pair.token();
    for _ in 0..4 {
        let room = room(&first.server.queue_pair, 8);
        shared.post_receive(room).unwrap();
    }
    first.disconnect_both();
    if site.soft == Soft::Rxe && newer_commands::is_new() {
        let next_event = || events.next(PATIENCE).unwrap().unwrap();
        let last = AsyncEvent {
            kind: AsyncEventKind::QP_LAST_WQE_REACHED,
            source: AsyncEventSource::QueuePair(ended),
        };
        while next_event() != last {}
    }
    // The other queue pairs have the requests now, and another event follows.
    shared.set_limit(4).unwrap();
    send(&second.client.queue_pair, b"x");
    assert!(received(&second.server.queue_pair).result().is_ok());
    loop {
        let event = events.next(PATIENCE).unwrap().unwrap();
        if event.kind == AsyncEventKind::SRQ_LIMIT_REACHED {
            break;
        }
        let is_last = event.kind == AsyncEventKind::QP_LAST_WQE_REACHED;
        assert!(!is_last || (site.soft == Soft::Rxe && newer_commands::is_new()));
    }
}

/// Three queue pairs that share a completion queue for sends and receives.
fn on_one_queue(site: &Site) -> (CompletionQueue, Vec<Pair>) {
    let context = site.verbs();
    let channel = context.create_completion_channel().unwrap();
    let queue = CompletionQueue::options(200).channel(&channel);
    let queue = queue.create(&context).unwrap();
    let options = QueuePair::options(QpType::RC).caps(ROOMY);
    let options = options.send_cq(&queue).recv_cq(&queue);
    let queue_pairs = (0..3).map(|_| options.create(&context).unwrap());
    let connect = |queue_pair| {
        let client = site.queue_pair_with(ROOMY);
        site.pair_of(client, queue_pair)
    };
    (queue, queue_pairs.map(connect).collect())
}

#[case]
fn completions_name_their_queue_pair(site: &Site) {
    let (queue, pairs) = on_one_queue(site);
    for round in 0..10 {
        let mut expected = HashMap::new();
        for (pair, number) in pairs.iter().zip(0..3) {
            let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
            for _ in 0..4 {
                let came = server.post_receive(room(server, 2)).unwrap();
                expected.insert(came, (server.number(), [round, number]));
                client.post_receive(room(client, 2)).unwrap();
                let message = sge(server, &[number, round]);
                let message = SendRequest::new(SendOperation::Send, message);
                let work = server.post_send(message).unwrap();
                expected.insert(work, (server.number(), [number, round]));
            }
        }
        // In reverse order, so that order alone does not make the test pass.
        for (pair, number) in pairs.iter().zip(0..3).rev() {
            for _ in 0..4 {
                send(&pair.client.queue_pair, &[round, number]);
            }
        }
        while !expected.is_empty() {
            let done = next(&queue);
            let (queue_pair, bytes) = expected.remove(&done.work).unwrap();
            assert_eq!(done.qp_number(), queue_pair);
            assert!(done.result().is_ok(), "{done:?}");
            assert_eq!(brought(done, 2), bytes);
        }
        for pair in &pairs {
            for _ in 0..4 {
                assert!(received(&pair.client.queue_pair).result().is_ok());
            }
        }
    }
    assert!(queue.poll().unwrap().is_none());
}

#[case]
fn destroying_a_queue_pair_keeps_completions_of_others(site: &Site) {
    let (queue, mut pairs) = on_one_queue(site);
    let mut posted = HashSet::new();
    for pair in &pairs {
        let server = &pair.server.queue_pair;
        for _ in 0..2 {
            let work = server.post_receive(room(server, 2)).unwrap();
            posted.insert((server.number(), work));
        }
    }
    for pair in &pairs {
        for _ in 0..2 {
            send(&pair.client.queue_pair, b"hi");
        }
    }
    // One completion that was polled, and one that was not.
    let first = next(&queue);
    assert!(posted.remove(&(first.qp_number(), first.work)));
    let other = pairs
        .iter()
        .position(|pair| pair.server.queue_pair.number() != first.qp_number());
    let gone = pairs.remove(other.unwrap()).server.queue_pair;
    posted.retain(|(number, _)| *number != gone.number());
    assert_eq!(gone.destroy().len(), 2);
    while !posted.is_empty() {
        let done = next(&queue);
        assert!(posted.remove(&(done.qp_number(), done.work)), "{done:?}");
        assert_eq!(brought(done, 2), b"hi");
    }
    assert!(queue.poll().unwrap().is_none());
}

#[case]
fn a_completion_queue_needs_capacity_for_a_shared_receive_queue(site: &Site) {
    let (shared, queue_pair) = receiver(site, 16);
    let context = queue_pair.context();
    let small = context.create_completion_queue(2).unwrap();
    let options = QueuePair::options(QpType::RC).shared_receive_queue(&shared);
    let options = options.protection_domain(queue_pair.protection_domain());
    let error = options.recv_cq(&small).create(context).unwrap_err();
    assert!(error.to_string().contains("room for all"), "{error}");
}

#[case]
fn a_channel_notifies_for_several_queues(site: &Site) {
    let context = site.verbs();
    let channel = context.create_completion_channel().unwrap();
    let queue = || {
        let options = CompletionQueue::options(32).channel(&channel);
        options.create(&context).unwrap()
    };
    let (sends, receives) = (queue(), queue());
    let options = QueuePair::options(QpType::RC).caps(ROOMY);
    let options = options.send_cq(&sends).recv_cq(&receives);
    let client = options.create(&context).unwrap();
    let pair = site.pair_of(client, site.queue_pair_with(ROOMY));
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let error = sends.next(PATIENCE).unwrap_err();
    assert!(matches!(error, Error::InvalidInput { .. }), "{error}");
    assert!(error.to_string().contains("other queues too"), "{error}");
    for queue in [&sends, &receives] {
        queue.arm(false).unwrap();
    }
    server.post_receive(room(server, 4)).unwrap();
    let request = SendRequest::new(SendOperation::Send, sge(client, b"a"));
    client.post_send(request).unwrap();
    assert_eq!(channel.next(PATIENCE), Ok(Some(sends.token())));
    assert!(sends.poll().unwrap().is_some());
    client.post_receive(room(client, 4)).unwrap();
    send(server, b"b");
    assert_eq!(channel.next(PATIENCE), Ok(Some(receives.token())));
    assert!(receives.poll().unwrap().is_some());
    assert_eq!(channel.try_next(), Ok(None));
    let other = site.verbs();
    let error = CompletionQueue::options(1).channel(&channel).create(&other);
    assert!(matches!(error, Err(Error::InvalidInput { .. })));
    let silent = context.create_completion_queue(1).unwrap();
    for error in [
        silent.arm(false).unwrap_err(),
        silent.next(PATIENCE).unwrap_err(),
    ] {
        let words = error.to_string();
        assert!(
            words.contains("made without a completion channel"),
            "{words}"
        );
    }
}

#[case]
fn a_completion_queue_is_resized(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    let queue = server.recv_cq();
    let before = queue.entries();
    if site.soft == Soft::Siw {
        // More may come than the first one has room for: not the reason.
        for _ in 0..2 {
            server.post_receive(room(server, 4)).unwrap();
        }
        let error = queue.resize(1).unwrap_err();
        assert!(error.to_string().contains("siw cannot resize"), "{error}");
        let error = queue.resize(100).unwrap_err();
        let kept = Operation::ResizeCompletionQueue { entries: 100 };
        let reason = "siw cannot resize completion queues";
        assert_eq!(
            error,
            Error::InvalidInput {
                operation: Box::new(kept),
                reason
            }
        );
        assert_eq!(queue.entries(), before);
        return;
    }
    for _ in 0..4 {
        server.post_receive(room(server, 4)).unwrap();
    }
    let error = queue.resize(3).unwrap_err();
    assert!(error.to_string().contains("may still come"), "{error}");
    for entries in [200, 8, 2000] {
        for number in 0..4 {
            send(client, &[number]);
        }
        // Completions in the queue are moved to the new memory.
        queue.resize(entries).unwrap();
        assert!(queue.entries() >= entries);
        assert!(queue.may_have_completions());
        for number in 0..4 {
            assert_eq!(brought(next(queue), 1), [number]);
            server.post_receive(room(server, 4)).unwrap();
        }
        assert!(!queue.may_have_completions());
    }
    let error = queue.resize(u32::MAX).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
}
