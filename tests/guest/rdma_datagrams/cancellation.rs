//! Futures of datagram sockets that are dropped after some polls.

use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;

use rdmacm::tokio::{Node, RdmaDatagram};
use rdmacm_test_helpers::poll_at_most;
use rdmacm_tests::{PATIENCE, SECOND, Site};
use rdmacm_tests_macros::case;
use tokio::time::timeout;

use super::v4;
use crate::connector::asynchronous::on_one_thread;

/// More polls than any of the futures takes.
const MAX_POLLS: usize = 50;
/// How many datagrams follow each other, fewer than a socket has room for.
const BURST: u8 = 32;

/// A server and its client, each of which knows the other's queue pair, and how many datagrams
/// the client may have in flight.
async fn pair(site: &Site, node: &Node, sends: u32) -> (RdmaDatagram, RdmaDatagram) {
    let options = || RdmaDatagram::options().with_node(node);
    let server = options().bind(v4(site, 0)).unwrap();
    let client = options().sends(sends).connect(server.local_addr()).await;
    let client = client.unwrap();
    introduce(&client, &server).await;
    (server, client)
}

async fn introduce(client: &RdmaDatagram, server: &RdmaDatagram) {
    let mut bytes = [0; 8];
    client.send(b"hello").await.unwrap();
    let hello = (5, client.local_addr());
    assert_eq!(server.recv_from(&mut bytes).await.unwrap(), hello);
    server.send_to(b"welcome", hello.1).await.unwrap();
    assert_eq!(client.recv(&mut bytes).await.unwrap(), 7);
}

fn within_patience(test: impl Future<Output = ()>) {
    on_one_thread().block_on(async { timeout(PATIENCE, test).await.unwrap() });
}

#[case(alone, needs(Datagrams))]
fn a_cancelled_receive_loses_nothing(site: &Site) {
    within_patience(async {
        let node = Node::open().unwrap();
        let (server, client) = pair(site, &node, 64).await;
        let mut byte = [0];
        for number in 0..BURST {
            // One that waits, one that is woken, and those that were not polled.
            let waiting = poll_at_most(1, server.recv_from(&mut byte)).await;
            assert!(waiting.is_none(), "{number}");
            let receiving = timeout(SECOND / 100, server.recv(&mut byte));
            assert!(receiving.await.is_err(), "{number}");
            client.send(&[number]).await.unwrap();
            let sender = receive_at_last(&server, &mut byte).await;
            assert_eq!((byte, sender), ([number], client.local_addr()));
        }
        let error = server.try_recv_from(&mut byte).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
    });
}

/// Receives with futures that are dropped after 0, 1 and more polls, until one is complete.
async fn receive_at_last(socket: &RdmaDatagram, into: &mut [u8]) -> SocketAddr {
    let mut polls = 0;
    loop {
        if let Some(received) = poll_at_most(polls % 3, socket.recv_from(into)).await {
            return received.unwrap().1;
        }
        polls += 1;
        tokio::task::yield_now().await;
    }
}

/// It was sent once, or not at all.
#[case(alone, needs(Datagrams))]
fn a_cancelled_send_sends_nothing(site: &Site) {
    within_patience(async {
        let node = Node::open().unwrap();
        let (server, client) = pair(site, &node, 1).await;
        let mut cancelled = 0;
        while cancelled < 3 * BURST {
            let mut sent = Vec::new();
            for number in 0..BURST {
                let bytes = [number];
                let polls = usize::from(number % 4).min(2);
                match poll_at_most(polls, client.send(&bytes)).await {
                    Some(outcome) => {
                        outcome.unwrap();
                        sent.push(number);
                    }
                    None => cancelled += 1,
                }
            }
            assert_eq!(receive_all(&server, sent.len()).await, sent);
        }
        // Nothing was sent twice.
        client.send(b"end").await.unwrap();
        assert_eq!(receive_all(&server, 1).await, *b"e");
    });
}

/// The first bytes of so many datagrams, in order: those that take different routes overtake each
/// other.
async fn receive_all(socket: &RdmaDatagram, count: usize) -> Vec<u8> {
    let mut received = Vec::new();
    let mut byte = [0];
    for _ in 0..count {
        assert_eq!(socket.recv(&mut byte).await.unwrap(), 1);
        received.extend(byte);
    }
    received.sort_unstable();
    received
}

#[case(alone, needs(Datagrams))]
fn a_cancelled_connect_leaves_the_node_as_it_was(site: &Site) {
    within_patience(async {
        let node = Node::open().unwrap();
        let (server, first) = pair(site, &node, 64).await;
        let mut is_complete = false;
        let mut polls = 0;
        while !is_complete {
            assert!(polls < MAX_POLLS);
            let connecting = RdmaDatagram::options().with_node(&node);
            let connecting = connecting.connect(server.local_addr());
            if let Some(connected) = poll_at_most(polls, connecting).await {
                introduce(&connected.unwrap(), &server).await;
                is_complete = true;
            }
            introduce(&first, &server).await;
            polls += 1;
        }
        assert!(polls > 2, "{polls}");
    });
}
