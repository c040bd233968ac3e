//! Receivers, one of whom requests the notification of messages, which takes its time.

use std::sync::Arc;
use std::task::Poll;

use rdmacm::verbs::CommandNumber;

use super::tasks::Tasks;
use crate::slow_commands::Task;

/// Messages that arrive before the request takes effect cause no notification. Who has made it takes
/// one of them, and must wake the other receiver.
#[tokio::test(start_paused = true)]
async fn who_finds_the_notification_requested_is_woken() {
    let tasks = Tasks::roce();
    let (client, server) = tasks.connect().await;
    // Otherwise the other receiver would be woken to run the event loop, and look then.
    let node = tasks.client_node.clone();
    let driver = tokio::spawn(async move { node.drive().await });
    let client = Arc::new(client);
    let receive = || {
        let client = Arc::clone(&client);
        Task::new(async move { client.receive().await.unwrap().unwrap().to_vec() })
    };
    let request = tasks.client.hold_next(CommandNumber::REQ_NOTIFY_CQ);
    let first = receive().poll_elsewhere();
    request.wait();
    let mut second = receive();
    assert!(second.poll().is_pending());
    for message in [b"1", b"2"] {
        server.send(message).await.unwrap();
    }
    server.flush().await.unwrap();
    assert!(!second.is_woken());
    drop(request);
    assert_eq!(first.join().unwrap(), Poll::Ready(b"1".to_vec()));
    assert!(second.is_woken());
    assert_eq!(second.poll(), Poll::Ready(b"2".to_vec()));
    driver.abort();
}
