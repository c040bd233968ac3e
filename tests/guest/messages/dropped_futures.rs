//! Futures, connections and tasks that are dropped while requests are outstanding:
//! their memory is freed when the device no longer uses it. Freed memory is filled with
//! a pattern and watched.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::resume_unwind;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use rdmacm::tokio::{Connection, Node};
use rdmacm::{Message, MessageOptions};
use rdmacm_core::AccessFlags;
use rdmacm_tests::Site;
use rdmacm_verbs::{RemoteAccessRegion, RemoteMemory, Sge};

use super::asynchronous::pair_with;
use crate::connector::asynchronous::{Dropped, on_one_thread};
use crate::data::{contents, pattern};
use crate::freed_memory::FreedBlocks;
use rdmacm_tests_macros::case;

/// Longer than a packet, so that some messages are half written.
const LENGTH: usize = 20_000;
/// Of messages, which are copied to watched memory.
const LONG: usize = 1500;
/// Messages in each direction.
const EACH: u8 = 8;
/// The number of receive requests, and of send requests, in each direction.
const PLACES: usize = 16;
/// Pieces of the pool: one for each request, and three more for receive requests, which are
/// posted again four at a time.
const PIECES: usize = 2 * PLACES + PLACES / 4 - 1;
/// Each order of four.
const ORDERS: usize = 24;
const ACCESS: AccessFlags = AccessFlags::LOCAL_WRITE
    .union(AccessFlags::REMOTE_WRITE)
    .union(AccessFlags::REMOTE_READ);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Send,
    Read,
    Write,
}

const KINDS: [Kind; 3] = [Kind::Send, Kind::Read, Kind::Write];

async fn pair(site: &Site, node: &Node, options: MessageOptions) -> (Connection, Connection) {
    pair_with(site, node, options.clone(), options).await
}

/// A buffer of a watched size, as long as the peer's memory.
fn memory(connection: &Connection, freed: &FreedBlocks, bytes: &[u8]) -> Sge {
    let mut buffer = connection.allocate(freed.size()).unwrap();
    buffer[..LENGTH].copy_from_slice(bytes);
    buffer.slice(0..LENGTH).unwrap()
}

/// The outstanding requests, without their results.
async fn transfer(connection: &Connection, kind: Kind, memory: Sge, remote: RemoteMemory) {
    let done = match kind {
        Kind::Send => connection.send_buffer(memory).await,
        Kind::Read => connection.read(memory, remote).await,
        Kind::Write => connection.write(memory, remote).await,
    };
    drop(done.unwrap());
}

/// The peer receives the bytes from before the future was dropped.
async fn assert_done(
    kind: Kind,
    client: &Connection,
    server: &Connection,
    exposed: &RemoteAccessRegion,
    bytes: &[u8],
) {
    if kind == Kind::Send {
        assert!(
            *server.receive().await.unwrap().unwrap() == *bytes,
            "other bytes"
        );
    }
    client.flush().await.unwrap();
    if kind == Kind::Write {
        // siw completes the write before it has arrived; this message follows it.
        client.send(b"written").await.unwrap();
        assert_eq!(*server.receive().await.unwrap().unwrap(), *b"written");
        assert!(contents(exposed) == bytes, "other bytes");
    }
}

#[case]
fn memory_outlives_a_future_dropped_at_any_poll(site: &Site) {
    on_one_thread().block_on(async {
        let node = Node::open().unwrap();
        let options = MessageOptions::new().size(LENGTH);
        let (client, server) = pair(site, &node, options).await;
        let exposed = server.expose(LENGTH, ACCESS).unwrap();
        for kind in KINDS {
            for polls in 1..=u8::MAX {
                let freed = FreedBlocks::of_about(LENGTH);
                let bytes = pattern(LENGTH, polls);
                let memory = memory(&client, &freed, &bytes);
                let transfer = transfer(&client, kind, memory, exposed.remote());
                let done = Dropped::after(polls.into(), transfer).await;
                if polls == 1 && done.is_none() {
                    // The completion is not polled yet.
                    assert_eq!(freed.count(), 0);
                }
                assert_done(kind, &client, &server, &exposed, &bytes).await;
                assert_eq!(freed.count(), 1);
                if done.is_some() {
                    break;
                }
            }
        }
    });
}

/// A peer without receive requests delays all later requests.
#[case(needs(Datagrams))]
fn memory_of_a_deferred_request_outlives_its_future(site: &Site) {
    on_one_thread().block_on(async {
        let node = Node::open().unwrap();
        let options = MessageOptions::new().size(LENGTH).receives(1);
        let (client, server) = pair(site, &node, options).await;
        let exposed = server.expose(LENGTH, ACCESS).unwrap();
        for kind in KINDS {
            for polls in 1..=4 {
                let freed = FreedBlocks::of_about(LENGTH);
                let bytes = pattern(LENGTH, polls);
                client.send(b"takes the room").await.unwrap();
                let kept = server.receive().await.unwrap().unwrap();
                client.send(b"waits for it").await.unwrap();
                let memory = memory(&client, &freed, &bytes);
                let mut transfer = Box::pin(transfer(&client, kind, memory, exposed.remote()));
                for _ in 0..polls {
                    assert!(is_pending(transfer.as_mut()).await);
                    tokio::task::yield_now().await;
                }
                drop(transfer);
                assert_eq!(freed.count(), 0);
                drop(kept);
                assert_eq!(*server.receive().await.unwrap().unwrap(), *b"waits for it");
                assert_done(kind, &client, &server, &exposed, &bytes).await;
                assert_eq!(freed.count(), 1);
            }
        }
    });
}

/// Polls a future once.
async fn is_pending(mut future: Pin<&mut impl Future>) -> bool {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await
}

/// A side whose memory is watched: its own buffers and its send pool.
struct Watched {
    lent: FreedBlocks,
    pool: FreedBlocks,
}

impl Watched {
    fn new() -> Self {
        let lent = FreedBlocks::of_about(LENGTH);
        let pool = FreedBlocks::of_size(|number| PIECES * (LONG + number));
        Self { lent, pool }
    }

    async fn pair(&self, site: &Site, node: &Node) -> (Connection, Connection) {
        let places = PLACES.try_into().unwrap();
        let ours = MessageOptions::new().size(self.pool.size() / PIECES);
        let ours = ours.receives(places).sends(places);
        pair_with(site, node, ours, MessageOptions::new().size(LENGTH)).await
    }

    /// Everything is freed, and nothing has written to it since.
    fn assert_freed(&self) {
        assert_eq!(self.lent.count(), KINDS.len());
        assert_eq!(self.pool.count(), 1);
    }
}

/// Messages in each direction, some of them on the way while an earlier one is held,
/// and a request of each kind whose future has been polled once.
async fn load(
    client: &Connection,
    server: &Connection,
    theirs: &RemoteAccessRegion,
    watched: &Watched,
) -> Message {
    // On iWARP the connecting side speaks first.
    client.send(&pattern(LONG, 1)).await.unwrap();
    assert!(*server.receive().await.unwrap().unwrap() == pattern(LONG, 1));
    server.send(b"the first").await.unwrap();
    let kept = client.receive().await.unwrap().unwrap();
    for seed in 0..EACH {
        server.send(&pattern(LONG, seed)).await.unwrap();
        client.send(&pattern(LONG, seed)).await.unwrap();
    }
    for kind in KINDS {
        let memory = memory(client, &watched.lent, &pattern(LENGTH, 1));
        let transfer = pin!(transfer(client, kind, memory, theirs.remote()));
        is_pending(transfer).await;
    }
    kept
}

/// The peer received what was sent, up to some message.
async fn assert_whole(server: &Connection) {
    let mut expected: Vec<_> = (0..EACH).map(|seed| pattern(LONG, seed)).collect();
    expected.push(pattern(LENGTH, 1));
    for expected in expected {
        match server.receive().await {
            Ok(Some(message)) => assert!(*message == expected, "other bytes"),
            Ok(None) => return,
            Err(error) => return assert!(!error.is_timeout(), "{error}"),
        }
    }
}

#[case]
fn no_write_to_memory_freed_with_its_connection(site: &Site) {
    for order in 0..ORDERS {
        on_one_thread().block_on(async {
            let watched = Watched::new();
            let node = Node::open().unwrap();
            let (client, server) = watched.pair(site, &node).await;
            let theirs = server.expose(LENGTH, ACCESS).unwrap();
            let kept = load(&client, &server, &theirs, &watched).await;
            let exposed = client.expose(LENGTH, ACCESS).unwrap();
            let mut handles: Vec<Box<dyn Any>> = vec![
                Box::new(client),
                Box::new(node),
                Box::new(kept),
                Box::new(exposed),
            ];
            let mut rest = order;
            while !handles.is_empty() {
                let next = rest % handles.len();
                rest /= handles.len();
                drop(handles.swap_remove(next));
            }
            watched.assert_freed();
            assert_whole(&server).await;
            watched.assert_freed();
        });
    }
}

/// Unwinds like a panic, without a message.
#[case]
fn no_write_to_memory_freed_by_a_panicking_task(site: &Site) {
    for _ in 0..ORDERS {
        on_one_thread().block_on(async {
            let watched = Arc::new(Watched::new());
            let node = Node::open().unwrap();
            let (client, server) = watched.pair(site, &node).await;
            let server = Arc::new(server);
            let theirs = server.expose(LENGTH, ACCESS).unwrap();
            let (watching, peer) = (Arc::clone(&watched), Arc::clone(&server));
            let task = tokio::spawn(async move {
                let client = client;
                let _kept = load(&client, &peer, &theirs, &watching).await;
                let mut receiving = pin!(client.receive());
                is_pending(receiving.as_mut()).await;
                resume_unwind(Box::new("on purpose"));
            });
            assert!(task.await.unwrap_err().is_panic());
            watched.assert_freed();
            assert_whole(&server).await;
            watched.assert_freed();
        });
    }
}
