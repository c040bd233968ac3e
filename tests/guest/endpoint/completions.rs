//! Waiting for requests that were posted with the verbs interface.

use std::io;
use std::sync::Arc;
use std::thread;

use rdmacm::core::EventKind;
use rdmacm::{Cause, Result, Stage};
use rdmacm_core::QpType;
use rdmacm_tests::{PATIENCE, SECOND, Site};
use rdmacm_verbs::{Buffer, Completion, QueuePair};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::{Awaited, Connected, awaited_pair, options, pair};
use crate::connector::asynchronous::{Dropped, on_one_thread, on_threads};
use crate::link::Link;
use crate::messages::ending;
use crate::messages::removal::{RemovalSeen, removal_seen};
use rdmacm_tests_macros::case;

/// The number of receive requests, and of messages, of a side.
const MESSAGES: u8 = 16;
const WAITERS: usize = 5;

fn too_late(error: &rdmacm::Error, step: Stage) {
    assert!(matches!(error.cause(), Cause::Deadline), "{error}");
    assert_eq!(error.stage(), step);
}

#[case]
fn a_wait_times_out(site: &Site) {
    let (client, server) = pair(site, &options());
    too_late(&client.next_sent(SECOND / 20).unwrap_err(), Stage::Send);
    let error = server.next_received(SECOND / 20).unwrap_err();
    too_late(&error, Stage::Receive);
    assert_eq!(error.device(), Some(site.device));
    // A later completion is returned to the next waiter.
    super::exchange(&client, &server);
}

#[case]
fn a_wait_times_out_on_tokio(site: &Site) {
    on_one_thread().block_on(async {
        let (client, server) = awaited_pair(site, &options()).await;
        let error = client.next_sent(SECOND / 20).await.unwrap_err();
        too_late(&error, Stage::Send);
        let error = server.next_received(SECOND / 20).await.unwrap_err();
        too_late(&error, Stage::Receive);
        let work = client.post_send(message(client.queue_pair(), 7)).unwrap();
        assert_eq!(client.next_sent(PATIENCE).await.unwrap().work, work);
        let received = server.next_received(PATIENCE).await.unwrap();
        assert_eq!(number(received), 7);
    });
}

#[case]
fn a_queue_without_a_completion_channel_is_refused(site: &Site) {
    let (client, _server) = pair(site, &QueuePair::options(QpType::RC));
    let error = client.next_sent(PATIENCE).unwrap_err();
    match error.cause() {
        Cause::Device { error, .. } if error.kind() == io::ErrorKind::InvalidInput => {}
        other => panic!("{other:?}"),
    }
}

/// A message that contains a number.
fn message(queue_pair: &QueuePair, number: u8) -> Buffer {
    let mut message = queue_pair.protection_domain().allocate(16).unwrap();
    message.fill(number);
    message
}

fn number(received: Completion) -> u8 {
    assert_eq!(received.result().unwrap().bytes, 16);
    let message = received.sg_list.into_buffer().unwrap();
    assert_eq!(*message, [message[0]; 16]);
    message[0]
}

/// Passes on received messages until the end, which returns the unused requests.
fn pass_on(received: Result<Completion>, to: &UnboundedSender<u8>) -> Option<EventKind> {
    match received {
        Ok(received) => match received.result() {
            Ok(_) => to.send(number(received)).unwrap(),
            Err(error) => assert!(error.is_flush(), "{error}"),
        },
        Err(error) => return Some(ending(&error)),
    }
    None
}

/// rxe completes them some time after the connection has closed.
#[case]
fn all_requests_complete_before_the_end(site: &Site) {
    for _ in 0..10 {
        let (client, server) = pair(site, &options());
        let posted = server.queue_pair().outstanding_receives();
        assert_eq!(posted, server.queue_pair().caps().max_recv_wr);
        thread::scope(|scope| {
            let closing = scope.spawn(|| client.close(PATIENCE).unwrap());
            let mut flushed = 0;
            let end = loop {
                match server.next_received(PATIENCE) {
                    Ok(completion) => assert!(completion.result().unwrap_err().is_flush()),
                    Err(error) => break error,
                }
                flushed += 1;
            };
            assert_eq!(ending(&end), EventKind::Disconnected);
            assert_eq!(
                (flushed, server.queue_pair().outstanding_receives()),
                (posted, 0)
            );
            closing.join().unwrap();
        });
    }
}

#[case]
fn many_threads_wait(site: &Site) {
    let (client, server) = pair(site, &options());
    let (numbers, mut arrived) = unbounded_channel();
    thread::scope(|scope| {
        let waiting = [(); WAITERS].map(|()| {
            let (server, numbers) = (&server, numbers.clone());
            scope.spawn(move || {
                loop {
                    let received = server.next_received(PATIENCE);
                    if let Some(ending) = pass_on(received, &numbers) {
                        break ending;
                    }
                }
            })
        });
        // The waiters alone have one: if they fail, there are no more numbers.
        drop(numbers);
        for number in 0..MESSAGES - 1 {
            client
                .post_send(message(client.queue_pair(), number))
                .unwrap();
        }
        for _ in 0..MESSAGES - 1 {
            client.next_sent(PATIENCE).unwrap().result().unwrap();
        }
        let arrivals = (1..MESSAGES).map(|_| arrived.blocking_recv().unwrap());
        let mut numbers: Vec<_> = arrivals.collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..MESSAGES - 1));
        client.close(PATIENCE).unwrap();
        for waiter in waiting {
            assert_eq!(waiter.join().unwrap(), EventKind::Disconnected);
        }
    });
}

#[case]
fn many_tasks_wait(site: &Site) {
    for runtime in [on_threads(), on_one_thread()] {
        runtime.block_on(async {
            let (client, server) = awaited_pair(site, &options()).await;
            let server = Arc::new(server);
            let (numbers, mut arrived) = unbounded_channel();
            let mut waiting = JoinSet::new();
            for _ in 0..WAITERS {
                let (server, numbers) = (Arc::clone(&server), numbers.clone());
                waiting.spawn(async move {
                    loop {
                        let received = server.next_received(PATIENCE).await;
                        if let Some(ending) = pass_on(received, &numbers) {
                            break ending;
                        }
                    }
                });
            }
            drop(numbers);
            for number in 0..MESSAGES - 1 {
                client
                    .post_send(message(client.queue_pair(), number))
                    .unwrap();
            }
            for _ in 0..MESSAGES - 1 {
                let sent = client.next_sent(PATIENCE).await.unwrap();
                sent.result().unwrap();
            }
            let mut numbers = Vec::new();
            while numbers.len() < MESSAGES as usize - 1 {
                numbers.push(arrived.recv().await.unwrap());
            }
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..MESSAGES - 1));
            client.close(PATIENCE).await.unwrap();
            while let Some(ending) = waiting.join_next().await {
                assert_eq!(ending.unwrap(), EventKind::Disconnected);
            }
        });
    }
}

#[case]
fn a_dropped_wait_loses_no_completion(site: &Site) {
    on_one_thread().block_on(async {
        let (client, server) = awaited_pair(site, &options()).await;
        for number in 0..MESSAGES {
            let work = client
                .post_send(message(client.queue_pair(), number))
                .unwrap();
            let mut polls = 1;
            let received = loop {
                if let Some(received) = Dropped::after(polls, server.next_received(PATIENCE)).await
                {
                    break received.unwrap();
                }
                polls = polls % 4 + 1;
                tokio::task::yield_now().await;
            };
            assert_eq!(self::number(received), number);
            assert_eq!(client.next_sent(PATIENCE).await.unwrap().work, work);
        }
    });
}

/// Waits for the end; outstanding requests may complete first.
fn last(mut next: impl FnMut() -> Result<Completion>) -> rdmacm::Error {
    loop {
        match next() {
            Ok(completion) => drop(completion.result().unwrap_err()),
            Err(error) => break error,
        }
    }
}

/// Completions of both queues of a side.
fn last_of_both(side: &Connected) -> [rdmacm::Error; 2] {
    thread::scope(|scope| {
        let sends = scope.spawn(|| last(|| side.next_sent(PATIENCE)));
        let receives = last(|| side.next_received(PATIENCE));
        [sends.join().unwrap(), receives]
    })
}

async fn last_awaited(side: &Awaited) -> [rdmacm::Error; 2] {
    let sends = async {
        loop {
            match side.next_sent(PATIENCE).await {
                Ok(completion) => drop(completion.result().unwrap_err()),
                Err(error) => break error,
            }
        }
    };
    let receives = async {
        loop {
            match side.next_received(PATIENCE).await {
                Ok(completion) => drop(completion.result().unwrap_err()),
                Err(error) => break error,
            }
        }
    };
    let (sends, receives) = tokio::join!(sends, receives);
    [sends, receives]
}

/// Also without outstanding requests.
#[case]
fn the_peers_disconnect_ends_the_wait(site: &Site) {
    let (client, server) = pair(site, &options());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| last_of_both(&server));
        client.close(PATIENCE).unwrap();
        for error in waiting.join().unwrap() {
            assert_eq!(ending(&error), EventKind::Disconnected);
        }
    });
    // Later calls return the same.
    let error = server.next_sent(PATIENCE).unwrap_err();
    assert_eq!(ending(&error), EventKind::Disconnected);
}

#[case]
fn the_peers_disconnect_ends_the_wait_on_tokio(site: &Site) {
    on_one_thread().block_on(async {
        let (client, server) = awaited_pair(site, &options()).await;
        let waiting = last_awaited(&server);
        let (errors, closed) = tokio::join!(waiting, client.close(PATIENCE));
        closed.unwrap();
        for error in errors {
            assert_eq!(ending(&error), EventKind::Disconnected);
        }
    });
}

#[case(alone)]
fn device_removal_ends_the_wait(site: &Site) {
    let link = Link::new(site);
    let (client, server) = pair(&link.site(site), &options());
    thread::scope(|scope| {
        // Each side closes the device when it has detected the removal.
        let sides = [client, server].map(|side| scope.spawn(move || last_of_both(&side)));
        link.remove_device();
        let errors = sides.map(|side| side.join().unwrap());
        assert!(
            errors
                .into_iter()
                .flatten()
                .any(|error| removal_seen(error) == RemovalSeen::DeviceGone)
        );
    });
}

#[case(alone)]
fn device_removal_ends_the_wait_on_tokio(site: &Site) {
    let link = Link::new(site);
    on_one_thread().block_on(async {
        let (client, server) = awaited_pair(&link.site(site), &options()).await;
        let last_error = async |side: Awaited| last_awaited(&side).await;
        let removing = link.remove_device_beside_tasks();
        let (one, other, ()) = tokio::join!(last_error(client), last_error(server), removing);
        let errors = [one, other];
        assert!(
            errors
                .into_iter()
                .flatten()
                .any(|error| removal_seen(error) == RemovalSeen::DeviceGone)
        );
    });
}
