//! Futures of messages that are dropped after each possible number of polls.

use rdmacm::core::{AccessFlags, Deadline};
use rdmacm::{CLOSE_DEADLINE, MessageOptions};

use super::SECOND;
use super::tasks::Tasks;
use crate::cancellation::{MAX_POLLS, poll_at_most};

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
}

#[tokio::test(start_paused = true)]
async fn reading_memory() {
    let tasks = Tasks::roce();
    let (near, far) = tasks.connect().await;
    tasks.fabric.set_delay(SECOND);
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_READ;
    let region = far.expose(8, access).unwrap();
    region.write(0, b"readable");
    let mut polls = 0;
    loop {
        // The memory of a dropped read stays registered until the read is done.
        let reading = near.read(near.allocate(8).unwrap(), region.remote());
        let read = poll_at_most(polls, reading).await;
        let is_complete = read.is_some();
        if let Some(read) = read {
            assert_eq!(read.unwrap()[..], *b"readable");
        }
        near.flush().await.unwrap();
        if is_complete {
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
