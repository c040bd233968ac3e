//! A reader and a writer, one of whom requests the notification of messages, which takes its time.

use std::task::Poll;

use rdmacm::verbs::CommandNumber;
use rdmacm_sim::Fabric;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

use super::SECOND;
use super::tasks::Tasks;
use crate::slow_commands::Task;

/// Messages that arrive before the request takes effect cause no notification. The reader that has
/// made it takes those that it wants bytes of, and must wake the writer for the others.
#[tokio::test(start_paused = true)]
async fn a_writer_that_finds_the_notification_requested_is_woken() {
    let tasks = Tasks::new(Fabric::roce(["client", "server"]));
    let (client, mut server) = tasks.connect().await;
    // Otherwise the writer would be woken to run the event loop, and look then.
    let node = tasks.client_node.clone();
    let driver = tokio::spawn(async move { node.drive().await });
    let mut written = 0;
    // What this side has room for, and then, that having arrived, what the peer has room for.
    for _ in 0..2 {
        while let Ok(bytes) = client.try_write(&[7; 1000]) {
            written += bytes;
        }
        sleep(SECOND).await;
    }
    let (mut read, mut write) = client.into_split();
    let request = tasks.client.hold_next(CommandNumber::REQ_NOTIFY_CQ);
    let reading = Task::new(async move { read.read(&mut [0; 10]).await.unwrap() });
    let reading = reading.poll_elsewhere();
    request.wait();
    let mut writing = Task::new(async move { write.write(&[7]).await.unwrap() });
    assert!(writing.poll().is_pending());
    server.write_all(&[1; 10]).await.unwrap();
    server.read_exact(&mut vec![0; written]).await.unwrap();
    // By the fabric's clock.
    sleep(SECOND).await;
    assert!(!writing.is_woken());
    drop(request);
    assert_eq!(reading.join().unwrap(), Poll::Ready(10));
    assert!(writing.is_woken());
    assert_eq!(writing.poll(), Poll::Ready(1));
    driver.abort();
}
