//! Waiting until a read or a write need not wait, and looking at what has arrived.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::Shutdown;
use std::sync::Arc;

use rdmacm::tokio::RdmaStream;
use rdmacm_test_helpers::poll_at_most;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::cancellation::{drop_after_each, drop_writes};
use super::tasks::Tasks;
use super::{SECOND, bytes, small};

/// Writes until there is no room.
pub(super) fn fill(stream: &RdmaStream) -> Vec<u8> {
    let mut filled = Vec::new();
    loop {
        match stream.try_write(&bytes(10)) {
            Ok(written) => filled.extend(&bytes(10)[..written]),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
                return filled;
            }
        }
    }
}

fn read_now(stream: &RdmaStream) -> Vec<u8> {
    let mut received = vec![0; 1000];
    let length = stream.try_read(&mut received).unwrap();
    received.truncate(length);
    received
}

#[tokio::test(start_paused = true)]
async fn what_was_peeked_is_read_afterwards() {
    for tasks in Tasks::each() {
        let (mut client, mut server) = tasks.connect().await;
        let mut peeked = [0; 8];
        assert_eq!(server.peek(&mut []).await.unwrap(), 0);
        let (length, written) = tokio::join!(server.peek(&mut peeked), client.write_all(b"hello"));
        written.unwrap();
        assert_eq!(peeked[..length.unwrap()], *b"hello");
        let length = poll_fn(|context| server.poll_peek(context, &mut peeked[..2]));
        assert_eq!(length.await.unwrap(), 2);
        let mut read = [0; 5];
        server.read_exact(&mut read).await.unwrap();
        assert_eq!(read, *b"hello");
        client.shutdown().await.unwrap();
        assert_eq!(server.peek(&mut peeked).await.unwrap(), 0);
    }
}

/// As who looks for the end of a header does.
#[tokio::test(start_paused = true)]
async fn what_comes_after_a_look_is_seen_by_the_next() {
    for tasks in Tasks::each() {
        let (mut client, server) = tasks.connect().await;
        let mut peeked = [0; 8];
        for (bytes, seen) in [(b"ab", 2), (b"cd", 4), (b"ef", 6)] {
            client.write_all(bytes).await.unwrap();
            sleep(SECOND).await;
            assert_eq!(server.peek(&mut peeked).await.unwrap(), seen);
        }
        assert_eq!(peeked[..6], *b"abcdef");
    }
}

/// More of them than are handled at once, and fewer; the peer has credits for all of them.
#[tokio::test(start_paused = true)]
async fn messages_that_came_together_are_read_together() {
    for tasks in Tasks::each() {
        let connected = tasks.connector().connect_stream(small().receives(100));
        let accepted = tasks.listener.accept();
        let (client, accepted) = tokio::join!(connected, accepted);
        let (mut client, mut server) = (client.unwrap(), accepted.unwrap().0);
        // On iWARP the server sends nothing before.
        client.write_all(b"x").await.unwrap();
        server.read_exact(&mut [0]).await.unwrap();
        // More than there are receive requests, in all.
        for count in [1, 2, 10, 11, 12, 33].repeat(2) {
            for byte in 0..count {
                server.write_all(&[byte]).await.unwrap();
            }
            sleep(SECOND).await;
            assert_eq!(read_now(&client), (0..count).collect::<Vec<_>>());
        }
    }
}

/// Each is a task of its own, which another one must wake.
#[tokio::test(start_paused = true)]
async fn one_message_wakes_all_that_do_not_take_it() {
    for tasks in Tasks::each() {
        let (mut client, server) = tasks.connect().await;
        let server = Arc::new(server);
        let mut waiting = JoinSet::new();
        for number in 0..9 {
            let server = Arc::clone(&server);
            waiting.spawn(async move {
                if number % 2 == 0 {
                    return server.readable().await.unwrap();
                }
                let mut peeked = [0];
                assert_eq!(server.peek(&mut peeked).await.unwrap(), 1);
                assert_eq!(peeked, *b"x");
            });
        }
        let polling = Arc::clone(&server);
        let polling = poll_fn(move |context| polling.poll_read_ready(context));
        waiting.spawn(async { polling.await.unwrap() });
        // All of them wait.
        assert!(timeout(SECOND, waiting.join_next()).await.is_err());
        client.write_all(b"x").await.unwrap();
        waiting.join_all().await;
        assert_eq!(read_now(&server), b"x");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_readable_when_something_has_come() {
    for tasks in Tasks::each() {
        let (client, server) = tasks.connect().await;
        let nothing = server.try_read(&mut [0]).unwrap_err();
        assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
        assert_eq!(server.try_read(&mut []).unwrap(), 0);
        assert!(timeout(SECOND, server.readable()).await.is_err());
        assert_eq!(client.try_write(b"hello").unwrap(), 5);
        server.readable().await.unwrap();
        assert_eq!(read_now(&server), b"hello");
        client.shut_down(Shutdown::Write).unwrap();
        server.readable().await.unwrap();
        assert_eq!(read_now(&server), b"", "the end");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_writable_when_there_is_room() {
    for tasks in Tasks::each() {
        let (client, mut server) = tasks.connect().await;
        client.writable().await.unwrap();
        let mut sent = fill(&client);
        // Requests complete, but there is a limit to what the peer has not read.
        while let Ok(writable) = timeout(SECOND, client.writable()).await {
            writable.unwrap();
            sent.extend(fill(&client));
        }
        let reading = async {
            let mut received = vec![0; sent.len()];
            server.read_exact(&mut received).await.unwrap();
            assert!(received == sent);
        };
        let writable = poll_fn(|context| client.poll_write_ready(context));
        let (writable, ()) = tokio::join!(writable, reading);
        writable.unwrap();
        assert_eq!(client.try_write(b"x").unwrap(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_has_ended_is_ready() {
    for tasks in Tasks::each() {
        let (client, server) = tasks.connect().await;
        client.shut_down(Shutdown::Write).unwrap();
        client.writable().await.unwrap();
        let closed = client.try_write(b"x").unwrap_err();
        assert_eq!(closed.kind(), ErrorKind::BrokenPipe);
        drop(client);
        server.readable().await.unwrap();
        assert_eq!(read_now(&server), b"");
        server.writable().await.unwrap();
        let closed = server.try_write(b"x").unwrap_err();
        assert_eq!(closed.kind(), ErrorKind::BrokenPipe);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_has_failed_is_ready() {
    for (tasks, device) in Tasks::each().zip(["rxe0", "siw0"]) {
        let (_client, server) = tasks.connect().await;
        tasks.server.remove_device(device);
        server.readable().await.unwrap();
        server.writable().await.unwrap();
        for outcome in [server.try_read(&mut [0]), server.try_write(b"x")] {
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::NotConnected);
        }
    }
}

/// What was written before has perhaps not arrived.
#[tokio::test(start_paused = true)]
async fn shutting_down_writing_reports_a_failure() {
    for (tasks, device) in Tasks::each().zip(["rxe0", "siw0"]) {
        let (_client, mut server) = tasks.connect().await;
        tasks.server.remove_device(device);
        server.readable().await.unwrap();
        let failed = server.shutdown().await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::NotConnected);
    }
}

/// Waits for one message after the other, which arrives late, and drops the wait after each
/// number of polls.
async fn drop_waits_for_bytes(wait: impl AsyncFn(&RdmaStream, usize) -> bool) {
    for tasks in Tasks::each() {
        let (client, server) = tasks.connect().await;
        tasks.fabric.set_delay(SECOND);
        drop_after_each(2, async |polls| {
            let number = [u8::try_from(polls).unwrap()];
            client.writable().await.unwrap();
            assert_eq!(client.try_write(&number).unwrap(), 1);
            let is_complete = wait(&server, polls).await;
            server.readable().await.unwrap();
            assert_eq!(read_now(&server), number);
            is_complete
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_for_bytes_takes_none() {
    drop_waits_for_bytes(async |stream, polls| {
        let readable = poll_at_most(polls, stream.readable()).await;
        readable.transpose().unwrap().is_some()
    })
    .await;
    drop_waits_for_bytes(async |stream, polls| {
        let mut byte = [0];
        let peeked = poll_at_most(polls, stream.peek(&mut byte)).await;
        let is_complete = peeked.transpose().unwrap().is_some();
        assert!(!is_complete || usize::from(byte[0]) == polls);
        is_complete
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_for_room_takes_none() {
    drop_writes(async |stream, polls| {
        let writable = poll_at_most(polls, stream.writable()).await?;
        writable.unwrap();
        assert_eq!(stream.try_write(b"x").unwrap(), 1);
        Some(b"x".to_vec())
    })
    .await;
}
