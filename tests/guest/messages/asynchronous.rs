//! Connections that carry messages, on tokio.

use std::future::Future as _;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;

use rdmacm::MessageOptions;
use rdmacm::core::EventKind;
use rdmacm::tokio::{Connection, Connector, Listener, Node};
use rdmacm_core::AccessFlags;
use rdmacm_tests::{PATIENCE, SECOND, Site};
use tokio::task::JoinSet;

use crate::connector::asynchronous::{Dropped, on_one_thread, on_threads};
use rdmacm_tests_macros::case;

async fn pair(site: &Site) -> (Connection, Connection) {
    let options = MessageOptions::new();
    pair_with(site, &Node::open().unwrap(), options.clone(), options).await
}

/// A connection whose client is on this node.
pub(crate) async fn pair_with(
    site: &Site,
    node: &Node,
    client: MessageOptions,
    server: MessageOptions,
) -> (Connection, Connection) {
    let listener = Listener::options();
    let listener = listener.bind(site.v4(0)).unwrap();
    let connector = Connector::new(listener.local_addr()).deadline(PATIENCE);
    let client = tokio::spawn(connector.with_node(node).connect_messages(client));
    let incoming = listener.accept(PATIENCE).await.unwrap();
    let server = incoming.accept_messages(server).await.unwrap();
    let client = client.await.unwrap().unwrap();
    client.set_deadline(PATIENCE);
    server.set_deadline(PATIENCE);
    (client, server)
}

#[case]
fn ping_and_pong(site: &Site) {
    on_one_thread().block_on(async {
        let (client, server) = pair(site).await;
        let echo = async {
            while let Some(message) = server.receive().await.unwrap() {
                server.send(&message).await.unwrap();
            }
        };
        let ping = async {
            for number in 0..100_u8 {
                client.send(&[number; 300]).await.unwrap();
                assert_eq!(*client.receive().await.unwrap().unwrap(), [number; 300]);
            }
            client.close(PATIENCE).await.unwrap();
        };
        tokio::join!(echo, ping);
        let reason = server.closed(PATIENCE).await.unwrap();
        assert_eq!(reason.kind(), EventKind::Disconnected);
    });
}

/// Each task sends what it received, and every message is returned.
#[case]
fn many_tasks_on_one_connection(site: &Site) {
    on_threads().block_on(async {
        let (client, server) = pair(site).await;
        let (client, server) = (Arc::new(client), Arc::new(server));
        let mut tasks = JoinSet::new();
        for _ in 0..20 {
            let server = Arc::clone(&server);
            tasks.spawn(async move {
                while let Some(message) = server.receive().await.unwrap() {
                    server.send(&message).await.unwrap();
                }
            });
        }
        let mut clients = JoinSet::new();
        for task in 0..20_u8 {
            let client = Arc::clone(&client);
            clients.spawn(async move {
                let mut sum = 0;
                for number in 0..10_u8 {
                    client.send(&[task, number]).await.unwrap();
                    let message = client.receive().await.unwrap().unwrap();
                    sum += usize::from(message[0]) * 10 + usize::from(message[1]);
                }
                sum
            });
        }
        let mut sum = 0;
        while let Some(one) = clients.join_next().await {
            sum += one.unwrap();
        }
        assert_eq!(sum, (0..200).sum::<usize>());
        let client = Arc::into_inner(client).unwrap();
        client.close(PATIENCE).await.unwrap();
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
    });
}

/// All connections share one device and one completion channel.
#[case]
fn many_connections_on_one_node(site: &Site) {
    on_threads().block_on(async {
        let node = Node::open().unwrap();
        let small = MessageOptions::new().receives(4).sends(4).size(256);
        let listener = Listener::options().with_node(&node);
        let listener = listener.bind(site.v4(0)).unwrap();
        let address = listener.local_addr();
        let mut clients = JoinSet::new();
        for number in 0..30_u8 {
            let connector = Connector::new(address).with_node(&node).deadline(PATIENCE);
            let small = small.clone();
            clients.spawn(async move {
                let client = connector.connect_messages(small).await.unwrap();
                client.set_deadline(PATIENCE);
                client.send(&[number; 100]).await.unwrap();
                assert_eq!(*client.receive().await.unwrap().unwrap(), [number; 100]);
                client.close(PATIENCE).await.unwrap();
            });
        }
        let mut servers = JoinSet::new();
        for _ in 0..30 {
            let incoming = listener.accept(PATIENCE).await.unwrap();
            let small = small.clone();
            servers.spawn(async move {
                let server = incoming.accept_messages(small).await.unwrap();
                server.set_deadline(PATIENCE);
                let message = server.receive().await.unwrap().unwrap();
                server.send(&message).await.unwrap();
                assert!(server.receive().await.unwrap().is_none());
            });
        }
        while let Some(done) = clients.join_next().await {
            done.unwrap();
        }
        while let Some(done) = servers.join_next().await {
            done.unwrap();
        }
    });
}

#[case]
fn a_dropped_receive_loses_no_message(site: &Site) {
    on_one_thread().block_on(async {
        let (client, server) = pair(site).await;
        for number in 0..30_u8 {
            let sending = async {
                client.send(&[number; 200]).await.unwrap();
            };
            let receiving = async {
                let mut polls = 1;
                loop {
                    let receiving = Dropped::after(polls, server.receive());
                    if let Some(message) = receiving.await {
                        break message.unwrap().unwrap();
                    }
                    polls = polls % 4 + 1;
                    tokio::task::yield_now().await;
                }
            };
            let (message, ()) = tokio::join!(receiving, sending);
            assert_eq!(*message, [number; 200]);
        }
    });
}

/// Requests complete although their futures are dropped at any point; later requests
/// are not affected, and nothing is left at the end.
#[case]
fn memory_of_a_dropped_future_is_not_touched(site: &Site) {
    on_one_thread().block_on(async {
        let (client, server) = pair(site).await;
        let access =
            AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_READ;
        let exposed = server.expose(4096, access).unwrap();
        let remote = exposed.remote();
        for polls in (1..=5).cycle().take(100) {
            let mut buffer = client.allocate(4096).unwrap();
            buffer.fill(5);
            drop(Dropped::after(polls, client.write(buffer, remote)).await);
            let buffer = client.allocate(4096).unwrap();
            drop(Dropped::after(polls, client.read(buffer, remote)).await);
        }
        let mut buffer = client.allocate(4096).unwrap();
        buffer.fill(6);
        let buffer = client.write(buffer, remote).await.unwrap();
        let buffer = client.read(buffer, remote).await.unwrap();
        assert_eq!(*buffer, [6; 4096]);
        client.flush().await.unwrap();
        drop(server);
        assert!(client.receive().await.unwrap().is_none());
    });
}

/// A task that polls need not be woken: the reply comes during the one poll of its future.
#[case]
fn a_task_with_busy_poll_polls_before_it_sleeps(site: &Site) {
    let listener = rdmacm::Listener::options().bind(site.v4(0)).unwrap();
    let connector = Connector::new(listener.local_addr()).deadline(PATIENCE);
    thread::scope(|scope| {
        scope.spawn(|| {
            let incoming = listener.accept(PATIENCE).unwrap();
            let server = incoming.accept_messages(MessageOptions::new()).unwrap();
            while let Some(message) = server.receive().unwrap() {
                server.send(&message).unwrap();
            }
        });
        on_one_thread().block_on(async {
            let options = MessageOptions::new().busy_poll(10 * SECOND);
            let client = connector.connect_messages(options).await.unwrap();
            // siw may not read the first message before more arrives, which a task sends that sleeps.
            client.send(b"first").await.unwrap();
            assert_eq!(*client.receive().await.unwrap().unwrap(), *b"first");
            client.send(b"ping").await.unwrap();
            let mut context = Context::from_waker(Waker::noop());
            match pin!(client.receive()).poll(&mut context) {
                Poll::Ready(reply) => assert_eq!(*reply.unwrap().unwrap(), *b"ping"),
                Poll::Pending => panic!("the task waits to be woken"),
            }
            client.close(PATIENCE).await.unwrap();
        });
    });
}
