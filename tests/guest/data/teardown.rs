//! Contexts that are closed while they are in use.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use rdmacm_test_helpers::WatchedThread;
use rdmacm_tests::{PATIENCE, Site};
use rdmacm_verbs::{CompletionQueue, Error, QueuePair, SendOperation, SendRequest, SgList};

use super::{exposed, received, room, roomy, sent, sge};
use rdmacm_tests_macros::case;

/// Polls returned requests until the queue reports that its device is gone.
pub(crate) fn given_up(queue: &CompletionQueue) -> usize {
    let mut taken = 0;
    loop {
        match queue.next(PATIENCE) {
            Ok(Some(completion)) => {
                let error = completion.result().unwrap_err();
                assert!(error.is_context_closed() || error.is_flush(), "{error}");
                assert_eq!(error.qp_number, completion.qp_number());
                assert_ne!(completion.qp_number(), 0);
                assert_eq!(completion.sg_list.len(), 1);
                taken += 1;
            }
            Ok(None) => panic!("nothing came"),
            Err(error) => {
                assert!(error.is_context_closed(), "{error}");
                return taken;
            }
        }
    }
}

#[case]
fn outstanding_buffers_are_returned(site: &Site) {
    let pair = roomy(site);
    let client = &pair.client.queue_pair;
    for _ in 0..3 {
        client.post_receive(room(client, 4)).unwrap();
    }
    client.context().close();
    assert!(client.context().is_closed());
    assert_eq!(given_up(client.recv_cq()), 3);
    assert_eq!(given_up(client.send_cq()), 0);
    // Requests posted now are returned in the same way, or at once.
    if client.post_receive(SgList::NONE).is_ok() {
        assert!(client.recv_cq().poll().unwrap().is_some());
    }
    assert!(client.recv_cq().poll().unwrap_err().is_context_closed());
}

#[case]
fn every_call_reports_device_removal(site: &Site) {
    let pair = roomy(site);
    let client = &pair.client.queue_pair;
    let memory = exposed(client, 8);
    let context = client.context().clone();
    let events = context.async_events().unwrap();
    let channel = client.send_cq().channel().unwrap();
    client.post_receive(room(client, 4)).unwrap();
    let request = SendRequest::new(SendOperation::Send, sge(client, b"x"));
    context.close();
    context.close();
    assert!(
        client
            .post_send(request)
            .unwrap_err()
            .error
            .is_context_closed()
    );
    let closed = |outcome: Result<(), Error>| {
        let error = outcome.unwrap_err();
        assert!(error.is_context_closed(), "{error}");
        assert!(error.to_string().contains(site.device), "{error}");
    };
    closed(client.query().map(drop));
    closed(context.port(1).map(drop));
    closed(context.create_protection_domain().map(drop));
    closed(context.create_completion_queue(1).map(drop));
    closed(context.create_completion_channel().map(drop));
    closed(context.async_events().map(drop));
    closed(client.protection_domain().allocate(8).map(drop));
    closed(channel.try_next().map(drop));
    closed(events.next(PATIENCE).map(drop));
    closed(
        QueuePair::options(client.qp_type())
            .create(&context)
            .map(drop),
    );
    // Memory keeps its contents.
    memory.write(0, &[1; 8]);
    assert_eq!(super::contents(&memory), [1; 8]);
    let outstanding = pair.client.queue_pair.destroy();
    assert_eq!(outstanding.len(), 1);
}

#[case]
fn waiting_threads_are_woken(site: &Site) {
    let pair = roomy(site);
    let client = &pair.client.queue_pair;
    let context = client.context();
    let events = context.async_events().unwrap();
    client.post_receive(room(client, 4)).unwrap();
    std::thread::scope(|scope| {
        let (tell, threads) = mpsc::channel();
        let waits = [client.recv_cq(), client.recv_cq(), client.send_cq()].map(|queue| {
            let tell = tell.clone();
            scope.spawn(move || {
                tell.send(WatchedThread::current()).unwrap();
                given_up(queue)
            })
        });
        let events = &events;
        let event = scope.spawn(move || {
            tell.send(WatchedThread::current()).unwrap();
            events.next(PATIENCE).unwrap_err().is_context_closed()
        });
        for thread in threads.iter().take(4) {
            thread.wait_until_asleep();
        }
        context.close();
        let taken = waits.map(|wait| wait.join().unwrap());
        assert_eq!((taken[0] + taken[1], taken[2]), (1, 0));
        assert!(event.join().unwrap());
    });
}

#[case]
fn removal_ends_under_load(site: &Site) {
    for _ in 0..5 {
        let pair = roomy(site);
        let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
        let memory = exposed(server, 1 << 16);
        let started = AtomicBool::new(false);
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| {
                let mut rooms = vec![room(client, memory.len()), room(client, memory.len())];
                loop {
                    while let Some(room) = rooms.pop() {
                        let read = SendOperation::Read(memory.remote());
                        let request = SendRequest::new(read, room);
                        if client.post_send(request).is_err() {
                            break;
                        }
                    }
                    match client.send_cq().next(PATIENCE) {
                        Ok(done) => rooms.push(done.unwrap().sg_list),
                        Err(error) => return assert!(error.is_context_closed(), "{error}"),
                    }
                    started.store(true, Ordering::Release);
                }
            });
            scope.spawn(|| {
                while !ended.load(Ordering::Acquire) {
                    let _ = client.post_receive(room_of(client));
                    let _ = client.recv_cq().poll();
                }
            });
            while !started.load(Ordering::Acquire) && !reading.is_finished() {
                std::hint::spin_loop();
            }
            client.context().close();
            ended.store(true, Ordering::Release);
        });
    }
}

/// Memory to receive into, if the device can register it.
fn room_of(queue_pair: &QueuePair) -> SgList {
    let domain = queue_pair.protection_domain();
    domain.allocate(16).map(SgList::from).unwrap_or_default()
}

#[case(waiting)]
fn handles_drop_in_any_order_after_removal(site: &Site) {
    for order in 0..120 {
        let queue_pair = site.queue_pair();
        queue_pair.post_receive(room(&queue_pair, 4)).unwrap();
        let memory = exposed(&queue_pair, 8);
        let queue = queue_pair.recv_cq().clone();
        let domain = queue_pair.protection_domain().clone();
        let context = queue_pair.context().clone();
        context.close();
        let mut handles: Vec<Box<dyn Send>> = vec![
            Box::new(memory),
            Box::new(queue),
            Box::new(domain),
            Box::new(queue_pair),
            Box::new(context),
        ];
        let mut rest = order;
        while !handles.is_empty() {
            let next = rest % handles.len();
            rest /= handles.len();
            drop(handles.swap_remove(next));
        }
    }
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    server.post_receive(room(server, 1)).unwrap();
    client
        .post_send(SendRequest::inline(SendOperation::Send, b"x"))
        .unwrap();
    assert!(sent(client).result().is_ok() && received(server).result().is_ok());
}
