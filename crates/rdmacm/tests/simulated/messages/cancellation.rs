//! Futures of messages that are dropped after each possible number of polls.

use std::sync::Arc;

use rdmacm::core::{AccessFlags, Deadline};
use rdmacm::tokio::Connection;
use rdmacm::verbs::{Buffer, RemoteMemory};
use rdmacm::{CLOSE_DEADLINE, MessageOptions};
use rdmacm_test_helpers::poll_at_most;
use tokio::time::Instant;

use super::SECOND;
use super::tasks::Tasks;
use crate::abandoned_polls::begin;
use crate::cancellation::MAX_POLLS;

#[tokio::test(start_paused = true)]
async fn connecting() {
    let tasks = Tasks::roce();
    let mut polls = 0;
    loop {
        let accepting = async {
            let incoming = tasks.listener.accept(SECOND).await.ok()?;
            incoming.accept().await.ok()
        };
        let connecting = poll_at_most(polls, tasks.connector().connect());
        let (connected, accepted) = tokio::join!(connecting, accepting);
        let is_complete = connected.is_some();
        connected.transpose().unwrap();
        drop(accepted);
        tasks.assert_clean();
        drop(tasks.connect().await);
        tasks.assert_clean();
        if is_complete {
            break;
        }
        polls += 1;
        assert!(polls < MAX_POLLS);
    }
    assert!(polls > 1, "{polls}");
}

#[tokio::test(start_paused = true)]
async fn accepting() {
    let tasks = Tasks::roce();
    let mut polls = 0;
    loop {
        let accepting = async {
            let incoming = tasks.listener.accept(Deadline::Never).await.unwrap();
            poll_at_most(polls, incoming.accept()).await
        };
        let (connected, accepted) = tokio::join!(tasks.connector().connect(), accepting);
        let is_complete = accepted.is_some();
        if let Some(accepted) = accepted {
            drop((accepted.unwrap(), connected.unwrap()));
        } else if let Ok(connection) = connected {
            connection.closed(CLOSE_DEADLINE).await.unwrap();
        }
        tasks.assert_clean();
        if is_complete {
            break;
        }
        polls += 1;
        assert!(polls < MAX_POLLS);
    }
    assert!(polls > 0);
}

/// Another caller's message is still in flight.
#[tokio::test(start_paused = true)]
async fn a_refused_transfer_ends_no_flush() {
    let tasks = Tasks::roce();
    let (near, far) = tasks.connect().await;
    let near = Arc::new(near);
    let region = far.expose(4, AccessFlags::REMOTE_READ).unwrap();
    tasks.fabric.set_delay(SECOND);
    near.send(b"in flight").await.unwrap();
    let began = Instant::now();
    let flushed = Arc::clone(&near);
    let flushing = begin(async move { flushed.flush().await.unwrap() }).await;
    let buffer = near.allocate(8).unwrap();
    near.read(buffer, region.remote()).await.unwrap_err();
    flushing.await.unwrap();
    assert!(began.elapsed() >= SECOND, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn receiving() {
    let tasks = Tasks::roce();
    let (near, far) = tasks.connect().await;
    tasks.fabric.set_delay(SECOND);
    for number in 0..20_u8 {
        // However often a receive is cancelled, the message is not lost.
        let polls = usize::from(number % 5);
        let sending = async {
            near.send(&[number]).await.unwrap();
            near.flush().await.unwrap();
        };
        let receiving = async {
            let message = match poll_at_most(polls, far.receive()).await {
                Some(message) => message,
                None => far.receive().await,
            };
            assert_eq!(message.unwrap().unwrap()[..], [number]);
        };
        tokio::join!(sending, receiving);
    }
    drop((near, far));
    tasks.assert_clean();
}

#[tokio::test(start_paused = true)]
async fn sending() {
    let tasks = Tasks::roce();
    let (near, far) = tasks.connect_with(MessageOptions::new().sends(1)).await;
    tasks.fabric.set_delay(SECOND);
    let mut sent = Vec::new();
    for number in 0..20_u8 {
        // It waits for room. A send that is dropped has sent nothing.
        let polls = usize::from(number % 4);
        if let Some(done) = poll_at_most(polls, near.send(&[number])).await {
            done.unwrap();
            sent.push(number);
        }
    }
    assert!(sent.len() > 1 && sent.len() < 20, "{sent:?}");
    let receiving = async {
        let mut received = Vec::new();
        while let Some(message) = far.receive().await.unwrap() {
            received.push(message[0]);
        }
        received
    };
    let (closed, received) = tokio::join!(near.close(60 * SECOND), receiving);
    closed.unwrap();
    assert_eq!(received, sent);
    drop((near, far));
    tasks.assert_clean();
}

/// What a future transfers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Send,
    Read,
    Write,
}

async fn transfer(
    connection: &Connection,
    kind: Kind,
    buffer: Buffer,
    remote: RemoteMemory,
) -> Buffer {
    let transferred = match kind {
        Kind::Send => connection.send_buffer(buffer).await,
        Kind::Read => connection.read(buffer, remote).await,
        Kind::Write => connection.write(buffer, remote).await,
    };
    transferred.unwrap()
}

/// Each transfer is dropped after each number of polls, while it waits for room as well.
async fn transferring(kind: Kind, is_full: bool) {
    let tasks = Tasks::roce();
    let (near, far) = tasks.connect_with(MessageOptions::new().sends(1)).await;
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_READ | AccessFlags::REMOTE_WRITE;
    let region = far.expose(8, access).unwrap();
    tasks.fabric.set_delay(SECOND);
    let regions = || tasks.client.verbs_objects().memory_regions;
    let before = regions();
    let mut polls = 0;
    loop {
        region.write(0, b"exposed!");
        let mut buffer = near.allocate(8).unwrap();
        buffer.copy_from_slice(b"buffered");
        if is_full {
            near.send(b"takes the room").await.unwrap();
        }
        let transferring = transfer(&near, kind, buffer, region.remote());
        let transferred = poll_at_most(polls, transferring).await;
        // A future that was polled may have posted. The device has the memory until it is
        // done, and this side not longer.
        near.flush().await.unwrap();
        assert_eq!(regions(), before + usize::from(transferred.is_some()));
        let mut exposed = [0; 8];
        region.read(0, &mut exposed);
        let is_written = exposed == *b"buffered";
        assert!(is_written || exposed == *b"exposed!");
        let mut received = Vec::new();
        while let Some(message) = far.try_receive().unwrap() {
            received.push(message.to_vec());
        }
        if is_full {
            assert_eq!(received.remove(0), b"takes the room");
        }
        assert!(received.is_empty() || received == [b"buffered"]);
        if let Some(buffer) = transferred {
            assert_eq!(is_written, kind == Kind::Write);
            assert_eq!(!received.is_empty(), kind == Kind::Send);
            assert_eq!(buffer[..] == *b"exposed!", kind == Kind::Read);
            break;
        }
        polls += 1;
        assert!(polls < MAX_POLLS);
    }
    assert!(polls > 0);
    drop((region, near, far));
    tasks.assert_clean();
}

#[tokio::test(start_paused = true)]
async fn sending_registered_memory() {
    transferring(Kind::Send, false).await;
}

#[tokio::test(start_paused = true)]
async fn sending_registered_memory_without_room() {
    transferring(Kind::Send, true).await;
}

#[tokio::test(start_paused = true)]
async fn reading_memory() {
    transferring(Kind::Read, false).await;
}

#[tokio::test(start_paused = true)]
async fn reading_memory_without_room() {
    transferring(Kind::Read, true).await;
}

#[tokio::test(start_paused = true)]
async fn writing_memory() {
    transferring(Kind::Write, false).await;
}

#[tokio::test(start_paused = true)]
async fn writing_memory_without_room() {
    transferring(Kind::Write, true).await;
}

#[tokio::test(start_paused = true)]
async fn flushing() {
    let tasks = Tasks::roce();
    let (near, far) = tasks.connect().await;
    tasks.fabric.set_delay(SECOND);
    let mut polls = 0;
    loop {
        near.send(b"message").await.unwrap();
        let flushed = poll_at_most(polls, near.flush()).await;
        if let Some(flushed) = flushed {
            flushed.unwrap();
            break;
        }
        polls += 1;
        assert!(polls < MAX_POLLS);
    }
    // Each message arrives once.
    for _ in 0..=polls {
        assert_eq!(far.receive().await.unwrap().unwrap()[..], *b"message");
    }
    assert!(far.try_receive().unwrap().is_none());
    drop((near, far));
    tasks.assert_clean();
}

#[tokio::test(start_paused = true)]
async fn waiting_for_the_end() {
    let tasks = Tasks::roce();
    let (near, far) = tasks.connect().await;
    // Nothing wakes it for a second poll.
    for polls in [0, 1, 1] {
        assert!(poll_at_most(polls, near.closed(None)).await.is_none());
    }
    let waiting = near.closed(SECOND);
    let (waited, ()) = tokio::join!(waiting, async { drop(far) });
    assert!(waited.unwrap().is_orderly());
    drop(near);
    tasks.assert_clean();
}

/// A transfer that was started is dropped after each number of polls of its wait.
#[tokio::test(start_paused = true)]
async fn waiting_for_a_transfer() {
    let tasks = Tasks::roce();
    let (near, far) = tasks.connect().await;
    tasks.fabric.set_delay(SECOND);
    let regions = || tasks.client.verbs_objects().memory_regions;
    let before = regions();
    let mut polls = 0;
    loop {
        let transfer = near.start_send(near.allocate(8).unwrap()).await.unwrap();
        let waited = poll_at_most(polls, transfer.wait()).await;
        let is_complete = waited.is_some();
        drop(waited);
        near.flush().await.unwrap();
        assert_eq!(regions(), before);
        if is_complete {
            break;
        }
        polls += 1;
        assert!(polls < MAX_POLLS);
    }
    for _ in 0..=polls {
        assert_eq!(far.receive().await.unwrap().unwrap().len(), 8);
    }
    drop((near, far));
    tasks.assert_clean();
}

#[tokio::test(start_paused = true)]
async fn closing() {
    let tasks = Tasks::roce();
    let mut polls = 0;
    loop {
        let (near, far) = tasks.connect().await;
        tasks.fabric.set_delay(SECOND);
        near.send(b"last").await.unwrap();
        let closing = async {
            let closed = poll_at_most(polls, near.close(60 * SECOND)).await;
            drop(near);
            closed
        };
        let (own, reason) = tokio::join!(closing, far.closed(60 * SECOND));
        assert!(reason.unwrap().is_orderly());
        drop(far);
        tasks.fabric.set_delay(std::time::Duration::ZERO);
        tasks.assert_clean();
        if let Some(own) = own {
            own.unwrap();
            break;
        }
        polls += 1;
        assert!(polls < MAX_POLLS);
    }
    assert!(polls > 1, "{polls}");
}
