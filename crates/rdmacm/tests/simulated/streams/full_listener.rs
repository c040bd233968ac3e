//! A listener with as many handshakes in flight as it allows.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, select};
use rdmacm::tokio::{Connector, Node, RdmaListener};
use rdmacm_sim::{Fabric, Host, MessageKind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep, timeout};

use super::tasks::Tasks;
use super::{SECOND, small};
use crate::abandoned_polls::{begin, drive};
use crate::hosts::{PORT, channel};

/// All but one of the handshakes that the listener allows.
const SILENT: usize = 63;

fn node(host: &Host) -> Node {
    let options = Node::options().channel(channel(host));
    let options = options.device_source(Arc::new(host.clone()));
    options.open().unwrap()
}

fn connector(node: &Node, server: &Host) -> Connector {
    let address = (server.address().unwrap(), PORT);
    Connector::new(address).with_node(node)
}

/// One of two callers takes the only handshake that ends, and is busy with its stream then.
#[tokio::test(start_paused = true)]
async fn a_handshake_that_ends_makes_room_for_another_caller() {
    let fabric = Fabric::roce(["client", "server", "silent", "late"]);
    let [silent, late] = ["silent", "late"].map(|name| fabric.find_host(name).unwrap());
    let Tasks {
        client,
        server,
        listener,
        ..
    } = Tasks::new(fabric);
    let listener = Arc::new(listener);
    let [first, second] = [(); 2].map(|()| {
        let listener = Arc::clone(&listener);
        Box::pin(begin(async move { listener.accept().await.unwrap() }))
    });
    let (first, second) = (first.await, second.await);
    silent.drop_next(MessageKind::ReadyToUse, usize::MAX);
    client.drop_next(MessageKind::ReadyToUse, 1);
    let nodes = [&silent, &client, &late].map(node);
    let connect = |node: &Node| connector(node, &server).connect_stream(small());
    let _silent = join_all((0..SILENT).map(|_| connect(&nodes[0]))).await;
    let _client = connect(&nodes[1]).await.unwrap();
    let late = begin(connect(&nodes[2])).await;
    let (accepted, waiting) = select(first, second).await.factor_first();
    let (_stream, peer) = accepted.unwrap();
    assert_eq!(Some(peer.ip()), client.address());
    let began = Instant::now();
    let _late = late.await.unwrap().unwrap();
    waiting.await.unwrap();
    let elapsed = began.elapsed();
    assert!(elapsed < SECOND, "{elapsed:?}");
}

/// A caller that polls is woken for that, even if it finds both requests at once.
#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_given_up_by_a_caller_that_polls() {
    let tasks = Tasks::new(Fabric::roce(["client", "server"]));
    let driving = drive(&tasks.server_node).await;
    let (listener, connector) = tasks.listen();
    let listener = RdmaListener::new(listener, small()).max_handshakes(1);
    let listener = listener.handshake_deadline(SECOND);
    tasks.client.drop_next(MessageKind::ReadyToUse, 1);
    let connect = || tokio::spawn(connector.clone().connect_stream(small()));
    let connecting = [connect(), connect()];
    sleep(SECOND / 10).await;
    let began = Instant::now();
    let polling = poll_fn(|context| listener.poll_accept(context));
    timeout(5 * SECOND, polling).await.unwrap().unwrap();
    let elapsed = began.elapsed();
    // The clock of the fabric may be behind.
    assert!((SECOND / 2..2 * SECOND).contains(&elapsed), "{elapsed:?}");
    driving.abort();
    drop(connecting);
}

/// Its answer is there, read or unread, when somebody waits again: a little after the deadline, or
/// much later.
#[tokio::test(start_paused = true)]
async fn a_peer_that_has_answered_while_nobody_waited_is_accepted() {
    let late = (10 * SECOND, 10 * SECOND + SECOND / 20);
    for (deadline, pause) in [late, (SECOND, 20 * SECOND)] {
        for is_driven in [true, false] {
            for tasks in Tasks::each() {
                accept_after_a_pause(tasks, is_driven, deadline, pause).await;
            }
        }
    }
}

async fn accept_after_a_pause(tasks: Tasks, is_driven: bool, deadline: Duration, pause: Duration) {
    let driving = drive(&tasks.server_node).await;
    if !is_driven {
        driving.abort();
    }
    // The clock of the fabric moves on.
    let client = drive(&tasks.client_node).await;
    let (listener, connector) = tasks.listen();
    let listener = RdmaListener::new(listener, small()).handshake_deadline(deadline);
    let connect = || tokio::spawn(connector.clone().connect_stream(small()));
    // On RoCE, one of them answers when it is asked again.
    tasks.client.drop_next(MessageKind::ReadyToUse, 1);
    let connecting = [connect(), connect()];
    sleep(SECOND / 10).await;
    let _first = listener.accept().await.unwrap();
    sleep(pause).await;
    let second = timeout(SECOND, listener.accept()).await;
    let (mut second, _) = second.unwrap().unwrap();
    second.write_all(b"welcome").await.unwrap();
    for connected in connecting {
        connected.await.unwrap().unwrap();
    }
    client.abort();
    driving.abort();
}

/// One that does not answer is given up all the same.
#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_given_up_though_nobody_waited() {
    let tasks = Tasks::new(Fabric::roce(["client", "server"]));
    let (listener, connector) = tasks.listen();
    let listener = RdmaListener::new(listener, small()).handshake_deadline(SECOND);
    tasks.client.drop_next(MessageKind::ReadyToUse, usize::MAX);
    let before = tasks.server.id_count();
    let connecting = tokio::spawn(connector.connect_stream(small()));
    let accept = async |time| timeout(time, listener.accept()).await.is_err();
    assert!(accept(SECOND / 10).await);
    assert_eq!(tasks.server.id_count(), before + 1);
    sleep(3 * SECOND).await;
    assert!(accept(2 * SECOND).await);
    assert_eq!(tasks.server.id_count(), before);
    connecting.abort();
}

/// Not when the first of them is given up.
#[tokio::test(start_paused = true)]
async fn a_full_listener_that_is_stopped_ends_at_once() {
    let fabric = Fabric::roce(["client", "server"]);
    let Tasks {
        client,
        server,
        listener,
        ..
    } = Tasks::new(fabric);
    client.drop_next(MessageKind::ReadyToUse, usize::MAX);
    let stop = listener.stop_handle();
    let accept = async move { listener.accept().await.unwrap_err() };
    let accepting = begin(accept).await;
    let node = node(&client);
    let connect = || connector(&node, &server).connect_stream(small());
    let _silent = join_all((0..=SILENT).map(|_| connect())).await;
    let began = Instant::now();
    stop.stop();
    assert_stopped(accepting.await.unwrap());
    assert!(began.elapsed() < SECOND, "{:?}", began.elapsed());
}

/// Nobody would accept their streams.
#[tokio::test(start_paused = true)]
async fn a_listener_that_is_stopped_gives_up_its_handshakes() {
    let Tasks {
        client,
        server,
        listener,
        ..
    } = Tasks::new(Fabric::roce(["client", "server"]));
    client.drop_next(MessageKind::ReadyToUse, usize::MAX);
    let listener = Arc::new(listener);
    let accepting = Arc::clone(&listener);
    let accepting = begin(async move { accepting.accept().await.unwrap_err() }).await;
    let node = node(&client);
    let connecting = connector(&node, &server).connect_stream(small());
    let mut stream = connecting.await.unwrap();
    listener.stop();
    assert_stopped(accepting.await.unwrap());
    let read = timeout(SECOND, stream.read(&mut [0])).await.unwrap();
    assert!(!matches!(read, Ok(1)), "{read:?}");
}

/// Its stream would be accepted by nobody.
#[tokio::test(start_paused = true)]
async fn a_listener_that_is_stopped_rejects_whom_it_has_not_begun_to_accept() {
    let tasks = Tasks::new(Fabric::roce(["client", "server"]));
    let driving = drive(&tasks.server_node).await;
    let (listener, connector) = tasks.listen();
    let listener = RdmaListener::new(listener, small());
    let connecting = tokio::spawn(connector.connect_stream(small()));
    sleep(SECOND / 10).await;
    listener.stop();
    assert_stopped(listener.accept().await.unwrap_err());
    let error = timeout(SECOND, connecting).await.unwrap().unwrap();
    let error = error.unwrap_err();
    assert!(error.is_rejected(), "{error}");
    driving.abort();
}

fn assert_stopped(error: std::io::Error) {
    let error = error.downcast::<rdmacm::Error>().unwrap();
    assert!(error.is_stopped(), "{error}");
}
