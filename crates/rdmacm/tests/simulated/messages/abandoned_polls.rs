//! Tasks that have polled a connection and do not poll it again.

use std::sync::Arc;

use tokio::time::timeout;

use super::SECOND;
use super::tasks::Tasks;
use crate::abandoned_polls::{begin, poll_and_go};

#[tokio::test(start_paused = true)]
async fn they_do_not_hold_up_other_connections_of_the_node() {
    let tasks = Tasks::roce();
    let (_idle_client, idle) = tasks.connect().await;
    let (client, server) = tasks.connect().await;
    let abandoned = poll_and_go(move |context| idle.poll_receive(context).is_ready()).await;
    let receiving = std::future::poll_fn(move |context| server.poll_receive(context));
    let receiving = begin(receiving).await;
    client.send(b"x").await.unwrap();
    let received = timeout(SECOND, receiving).await.unwrap().unwrap();
    assert_eq!(received.unwrap().unwrap()[..], *b"x");
    abandoned.abort();
}

#[tokio::test(start_paused = true)]
async fn they_do_not_hold_up_another_receiver() {
    let tasks = Tasks::roce();
    let (client, server) = tasks.connect().await;
    let server = Arc::new(server);
    let polling = Arc::clone(&server);
    let abandoned = poll_and_go(move |context| polling.poll_receive(context).is_ready()).await;
    let receiving = Arc::clone(&server);
    let receiving = begin(async move { receiving.receive().await }).await;
    client.send(b"x").await.unwrap();
    let received = timeout(SECOND, receiving).await.unwrap().unwrap();
    assert_eq!(received.unwrap().unwrap()[..], *b"x");
    abandoned.abort();
}
