//! Futures of streams that are dropped after each possible number of polls.

use std::io::ErrorKind;
use std::time::Duration;

use rdmacm::Cause;
use rdmacm::core::Deadline;
use rdmacm::tokio::RdmaStream;
use rdmacm_sim::Fabric;
use rdmacm_test_helpers::poll_at_most;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::tasks::Tasks;
use super::{SECOND, bytes, small};
use crate::cancellation::MAX_POLLS;

/// Drops a future after each number of polls, until it is complete by then: after
/// `least` or more, so that one that waits does wait.
pub(super) async fn drop_after_each(least: usize, mut future: impl AsyncFnMut(usize) -> bool) {
    let mut polls = 0;
    while !future(polls).await {
        polls += 1;
        assert!(polls < MAX_POLLS);
    }
    assert!(polls >= least, "{polls}");
}

/// Two ends that are not harmed carry bytes, and end in order.
async fn assert_works(mut near: RdmaStream, mut far: RdmaStream) {
    near.write_all(b"question").await.unwrap();
    far.read_exact(&mut [0; 8]).await.unwrap();
    far.write_all(b"answer").await.unwrap();
    near.read_exact(&mut [0; 6]).await.unwrap();
    let (near, far) = tokio::join!(near.close(60 * SECOND), far.close(60 * SECOND));
    near.unwrap();
    far.unwrap();
}

async fn read_all(mut stream: RdmaStream) -> Vec<u8> {
    let mut received = Vec::new();
    stream.read_to_end(&mut received).await.unwrap();
    received
}

/// Closes a stream, and returns what its peer reads until the end.
async fn close(near: RdmaStream, far: RdmaStream) -> Vec<u8> {
    let (closed, received) = tokio::join!(near.close(60 * SECOND), read_all(far));
    closed.unwrap();
    received
}

/// The other side has given up: the stream was not in use yet, and may end as one that was.
async fn expect_end(mut stream: RdmaStream) {
    match stream.read(&mut [0]).await {
        Ok(read) => assert_eq!(read, 0),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
    }
}

/// Writes as long as there is room. What comes next waits for an acknowledgement.
async fn fill(stream: &mut RdmaStream) -> Vec<u8> {
    let mut filled = Vec::new();
    while let Some(written) = poll_at_most(1, stream.write(&bytes(10))).await {
        filled.extend(&bytes(written.unwrap()));
    }
    filled
}

#[tokio::test(start_paused = true)]
async fn connecting() {
    for tasks in Tasks::each() {
        drop_after_each(2, async |polls| {
            // No client may come.
            let accepting = timeout(SECOND, tasks.listener.accept());
            let connecting = poll_at_most(polls, tasks.connector().connect_stream(small()));
            let (connected, accepted) = tokio::join!(connecting, accepting);
            let accepted = accepted.ok().map(|accepted| accepted.unwrap().0);
            let is_complete = connected.is_some();
            if let Some(connected) = connected {
                assert_works(connected.unwrap(), accepted.unwrap()).await;
            } else if let Some(accepted) = accepted {
                expect_end(accepted).await;
            }
            tasks.assert_clean().await;
            let (near, far) = tasks.connect().await;
            assert_works(near, far).await;
            tasks.assert_clean().await;
            is_complete
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn accepting() {
    for tasks in Tasks::each() {
        drop_after_each(2, async |polls| {
            let (listener, connector) = tasks.listen();
            let accepting = async {
                let incoming = listener.accept(Deadline::Never).await.unwrap();
                poll_at_most(polls, incoming.accept_stream(small())).await
            };
            let connecting = connector.connect_stream(small());
            let (connected, accepted) = tokio::join!(connecting, accepting);
            let is_complete = accepted.is_some();
            match (connected, accepted) {
                (connected, Some(accepted)) => {
                    assert_works(connected.unwrap(), accepted.unwrap()).await;
                }
                (Ok(connected), None) => expect_end(connected).await,
                (Err(error), None) => {
                    let has_disconnected = matches!(error.cause(), Cause::PeerGone);
                    assert!(error.is_rejected() || has_disconnected, "{polls}: {error}");
                }
            }
            drop(listener);
            tasks.assert_clean().await;
            is_complete
        })
        .await;
    }
}

/// The handshakes of a listener are those of whoever accepts next.
#[tokio::test(start_paused = true)]
async fn accepting_from_a_listener() {
    for tasks in Tasks::each() {
        drop_after_each(2, async |polls| {
            let mut is_complete = false;
            let accepting = async {
                let first = poll_at_most(polls, tasks.listener.accept()).await;
                is_complete = first.is_some();
                let accepted = match first {
                    Some(accepted) => accepted,
                    None => tasks.listener.accept().await,
                };
                accepted.unwrap().0
            };
            let connecting = tasks.connector().connect_stream(small());
            let (connected, accepted) = tokio::join!(connecting, accepting);
            assert_works(connected.unwrap(), accepted).await;
            tasks.assert_clean().await;
            is_complete
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn reading() {
    for tasks in Tasks::each() {
        let (mut near, mut far) = tasks.connect().await;
        tasks.fabric.set_delay(SECOND);
        drop_after_each(2, async |polls| {
            let mut byte = [0];
            let mut is_complete = false;
            let reading = async {
                let first = poll_at_most(polls, far.read(&mut byte)).await;
                is_complete = first.is_some();
                let read = match first {
                    Some(read) => read,
                    None => far.read(&mut byte).await,
                };
                assert_eq!(read.unwrap(), 1);
            };
            let number = [u8::try_from(polls).unwrap()];
            let (written, ()) = tokio::join!(near.write_all(&number), reading);
            written.unwrap();
            assert_eq!(byte, number);
            is_complete
        })
        .await;
        assert_eq!(close(near, far).await, b"");
        tasks.fabric.set_delay(Duration::ZERO);
        tasks.assert_clean().await;
    }
}

/// What a reader has looked at and not consumed is there the next time.
#[tokio::test(start_paused = true)]
#[expect(unsafe_code, reason = "the peers are this process's own")]
async fn reading_in_place() {
    for tasks in Tasks::each() {
        let (mut near, far) = tasks.connect().await;
        let (read, write) = far.into_split();
        // SAFETY: the peer is of this library, in this process.
        let mut reader = unsafe { read.in_place() };
        tasks.fabric.set_delay(SECOND);
        drop_after_each(2, async |polls| {
            let number = [u8::try_from(polls).unwrap(); 2];
            let mut is_complete = false;
            let reading = async {
                let first = poll_at_most(polls, reader.fill_buf()).await;
                is_complete = first.is_some_and(|filled| filled.is_ok());
                for _ in number {
                    assert_eq!(reader.fill_buf().await.unwrap()[0], number[0]);
                    reader.consume(1);
                }
            };
            let (written, ()) = tokio::join!(near.write_all(&number), reading);
            written.unwrap();
            is_complete
        })
        .await;
        let far = reader.into_half().reunite(write).unwrap();
        assert_eq!(close(near, far).await, b"");
        tasks.fabric.set_delay(Duration::ZERO);
        tasks.assert_clean().await;
    }
}

/// A write that is dropped after each number of polls, to a peer that reads late. `write` returns
/// what it has written, or nothing if it was dropped. The peer reads just that.
pub(super) async fn drop_writes(write: impl AsyncFn(&mut RdmaStream, usize) -> Option<Vec<u8>>) {
    for tasks in Tasks::each() {
        let (mut near, far) = tasks.connect().await;
        tasks.fabric.set_delay(SECOND);
        let writing = async {
            let mut written = Vec::new();
            drop_after_each(2, async |polls| {
                written.extend(fill(&mut near).await);
                let done = write(&mut near, polls).await;
                written.extend(done.iter().flatten());
                done.is_some()
            })
            .await;
            near.close(60 * SECOND).await.unwrap();
            written
        };
        let (written, received) = tokio::join!(writing, read_all(far));
        assert_eq!(received, written);
        tasks.fabric.set_delay(Duration::ZERO);
        tasks.assert_clean().await;
    }
}

#[tokio::test(start_paused = true)]
async fn writing() {
    drop_writes(async |near, polls| {
        let mut bytes = bytes(polls + 1);
        let done = poll_at_most(polls, near.write(&bytes)).await?;
        bytes.truncate(done.unwrap());
        Some(bytes)
    })
    .await;
}

/// One that is dropped keeps no memory: there is little of it.
#[tokio::test(start_paused = true)]
async fn reserving() {
    drop_writes(async |near, polls| {
        let mut slot = poll_at_most(polls, near.reserve(100)).await?.unwrap();
        let bytes = bytes(slot.len());
        slot.copy_from_slice(&bytes);
        slot.commit(bytes.len()).unwrap();
        Some(bytes)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn mapping() {
    for tasks in Tasks::each() {
        let (mut near, mut far) = tasks.connect().await;
        tasks.fabric.set_delay(SECOND);
        let regions = || tasks.client.verbs_objects().memory_regions;
        let before = regions();
        let mut memory = None;
        drop_after_each(2, async |polls| {
            let filled = fill(&mut near).await;
            // The peer has room for one region, which one that is dropped does not take.
            let mapped = poll_at_most(polls, near.map(8, 7)).await;
            memory = mapped.transpose().unwrap();
            assert_eq!(regions(), before + usize::from(memory.is_some()));
            let mut received = vec![0; filled.len()];
            far.read_exact(&mut received).await.unwrap();
            assert_eq!(received, filled);
            memory.is_some()
        })
        .await;
        near.write_all(b"m").await.unwrap();
        far.read_exact(&mut [0]).await.unwrap();
        far.write_all_at(b"written!", 7).await.unwrap();
        far.write_all(b"w").await.unwrap();
        near.read_exact(&mut [0]).await.unwrap();
        let mut written = [0; 8];
        memory.unwrap().read(0, &mut written);
        assert_eq!(written, *b"written!");
        assert_eq!(close(near, far).await, b"");
        tasks.fabric.set_delay(Duration::ZERO);
        tasks.assert_clean().await;
    }
}

/// On iWARP such a write does not wait: siw completes it before it has arrived.
#[tokio::test(start_paused = true)]
async fn writing_into_mapped_memory() {
    let tasks = Tasks::new(Fabric::roce(["client", "server"]));
    let (mut near, mut far) = tasks.connect().await;
    let memory = far.map(MAX_POLLS, 0).await.unwrap();
    far.write_all(b"m").await.unwrap();
    near.read_exact(&mut [0]).await.unwrap();
    tasks.fabric.set_delay(SECOND);
    let mut expected = [0; MAX_POLLS];
    drop_after_each(2, async |polls| {
        let filled = fill(&mut near).await;
        // One that is dropped has written nothing.
        let written = poll_at_most(polls, near.write_at(b"w", polls as u64)).await;
        if let Some(written) = written {
            assert_eq!(written.unwrap(), 1);
            expected[polls] = b'w';
        }
        let mut received = vec![0; filled.len()];
        far.read_exact(&mut received).await.unwrap();
        assert_eq!(received, filled);
        expected[polls] == b'w'
    })
    .await;
    near.write_all(b"w").await.unwrap();
    far.read_exact(&mut [0]).await.unwrap();
    let mut written = [0; MAX_POLLS];
    memory.read(0, &mut written);
    assert_eq!(written, expected);
    drop(memory);
    assert_eq!(close(near, far).await, b"");
    tasks.fabric.set_delay(Duration::ZERO);
    tasks.assert_clean().await;
}

/// One that is dropped has written a part from the beginning, or nothing.
#[tokio::test(start_paused = true)]
async fn writing_all_into_mapped_memory() {
    const LENGTH: usize = 3000;
    let tasks = Tasks::new(Fabric::roce(["client", "server"]));
    let (mut near, mut far) = tasks.connect().await;
    let memory = far.map(LENGTH, 0).await.unwrap();
    far.write_all(b"m").await.unwrap();
    near.read_exact(&mut [0]).await.unwrap();
    tasks.fabric.set_delay(SECOND);
    drop_after_each(3, async |polls| {
        let number = u8::try_from(polls + 1).unwrap();
        let written = poll_at_most(polls, near.write_all_at(&[number; LENGTH], 0)).await;
        // Arrives after what was written into the memory.
        near.write_all(b"w").await.unwrap();
        far.read_exact(&mut [0]).await.unwrap();
        let mut content = [0; LENGTH];
        memory.read(0, &mut content);
        let begun = content.iter().take_while(|byte| **byte == number).count();
        assert!(!content[begun..].contains(&number), "{polls}");
        match written {
            Some(written) => written.unwrap(),
            None => assert!(begun < LENGTH, "{polls}"),
        }
        begun == LENGTH
    })
    .await;
    drop(memory);
    assert_eq!(close(near, far).await, b"");
    tasks.fabric.set_delay(Duration::ZERO);
    tasks.assert_clean().await;
}

#[tokio::test(start_paused = true)]
async fn closing() {
    // On iWARP it does not wait.
    for (tasks, least) in Tasks::each().zip([2, 1]) {
        drop_after_each(least, async |polls| {
            let (mut near, far) = tasks.connect().await;
            tasks.fabric.set_delay(SECOND);
            near.write_all(b"last").await.unwrap();
            let closing = poll_at_most(polls, near.close(60 * SECOND));
            let (closed, received) = tokio::join!(closing, read_all(far));
            assert_eq!(received, b"last");
            tasks.fabric.set_delay(Duration::ZERO);
            tasks.assert_clean().await;
            closed.is_some_and(|closed| {
                closed.unwrap();
                true
            })
        })
        .await;
    }
}
