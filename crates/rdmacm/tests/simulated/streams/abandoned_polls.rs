//! Tasks that have polled a stream and do not poll it again.

use std::io;
use std::sync::Arc;

use rdmacm::tokio::RdmaListener;
use rdmacm_sim::{Fabric, MessageKind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::readiness::fill;
use super::tasks::Tasks;
use super::{SECOND, small};
use crate::abandoned_polls::{begin, drive, poll_and_go};

#[tokio::test(start_paused = true)]
async fn they_do_not_hold_up_other_streams_of_the_node() {
    for tasks in Tasks::each() {
        let (_idle_client, idle) = tasks.connect().await;
        let (mut client, mut server) = tasks.connect().await;
        let abandoned = poll_and_go(move |context| idle.poll_read_ready(context).is_ready()).await;
        let mut byte = [0];
        let reading = begin(async move { server.read_exact(&mut byte).await.map(drop) }).await;
        client.write_all(b"x").await.unwrap();
        timeout(SECOND, reading).await.unwrap().unwrap().unwrap();
        abandoned.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn they_do_not_hold_up_another_reader() {
    for tasks in Tasks::each() {
        let (mut client, server) = tasks.connect().await;
        let server = Arc::new(server);
        let polling = Arc::clone(&server);
        let abandoned =
            poll_and_go(move |context| polling.poll_read_ready(context).is_ready()).await;
        let waiting = Arc::clone(&server);
        let waiting = begin(async move { waiting.readable().await }).await;
        client.write_all(b"x").await.unwrap();
        timeout(SECOND, waiting).await.unwrap().unwrap().unwrap();
        assert_eq!(server.try_read(&mut [0]).unwrap(), 1);
        abandoned.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn they_do_not_hold_up_another_writer() {
    for tasks in Tasks::each() {
        let (client, mut server) = tasks.connect().await;
        let mut sent = fill(&client);
        while timeout(SECOND, client.writable()).await.is_ok() {
            sent.extend(fill(&client));
        }
        let client = Arc::new(client);
        let polling = Arc::clone(&client);
        let abandoned =
            poll_and_go(move |context| polling.poll_write_ready(context).is_ready()).await;
        let waiting = Arc::clone(&client);
        let waiting = begin(async move { waiting.writable().await }).await;
        server.read_exact(&mut vec![0; sent.len()]).await.unwrap();
        timeout(SECOND, waiting).await.unwrap().unwrap().unwrap();
        abandoned.abort();
    }
}

/// The listener, in a form that tasks share.
fn take_listener(tasks: &mut Tasks) -> Arc<RdmaListener> {
    let (unused, _) = tasks.listen();
    let unused = RdmaListener::new(unused, small());
    Arc::new(std::mem::replace(&mut tasks.listener, unused))
}

/// Connects to a task that accepts, which must not take long.
async fn connect_to<T>(tasks: &Tasks, accepting: JoinHandle<io::Result<T>>) {
    let connecting = tasks.connector().connect_stream(small());
    let accepting = timeout(SECOND, accepting);
    let (connected, accepted) = tokio::join!(connecting, accepting);
    accepted.unwrap().unwrap().unwrap();
    connected.unwrap();
}

#[tokio::test(start_paused = true)]
async fn they_do_not_hold_up_another_that_accepts() {
    for mut tasks in Tasks::each() {
        let driving = drive(&tasks.server_node).await;
        let listener = take_listener(&mut tasks);
        let polled = Arc::clone(&listener);
        let abandoned = poll_and_go(move |context| polled.poll_accept(context).is_ready()).await;
        let waiting = Arc::clone(&listener);
        let waiting = begin(async move { waiting.accept().await }).await;
        connect_to(&tasks, waiting).await;
        abandoned.abort();
        driving.abort();
    }
}

/// Nor one that has polled after it, once a handshake has begun.
#[tokio::test(start_paused = true)]
async fn they_do_not_hold_up_another_that_accepted_before() {
    let mut tasks = Tasks::new(Fabric::roce(["client", "server"]));
    let driving = drive(&tasks.server_node).await;
    let listener = take_listener(&mut tasks);
    let waiting = Arc::clone(&listener);
    let waiting = begin(async move { waiting.accept().await }).await;
    let polled = Arc::clone(&listener);
    let abandoned = poll_and_go(move |context| polled.poll_accept(context).is_ready()).await;
    tasks.client.drop_next(MessageKind::ReadyToUse, 1);
    let _silent = tasks.connector().connect_stream(small()).await.unwrap();
    connect_to(&tasks, waiting).await;
    abandoned.abort();
    driving.abort();
}

/// One that still waits polls again.
#[tokio::test(start_paused = true)]
async fn one_that_has_not_gone_is_woken_as_well() {
    for tasks in Tasks::each() {
        let (mut client, server) = tasks.connect().await;
        let server = Arc::new(server);
        let polling = Arc::clone(&server);
        let polls = std::future::poll_fn(move |context| polling.poll_read_ready(context));
        let polling = begin(polls).await;
        let waiting = Arc::clone(&server);
        let waiting = begin(async move { waiting.readable().await }).await;
        client.write_all(b"x").await.unwrap();
        for woken in [polling, waiting] {
            timeout(SECOND, woken).await.unwrap().unwrap().unwrap();
        }
    }
}
