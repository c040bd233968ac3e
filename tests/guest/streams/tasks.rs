//! Byte streams on tokio.

use std::future::Future as _;
use std::io::{Read as _, Write as _};
use std::net::Ipv4Addr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;

use rdmacm::StreamOptions;
use rdmacm::tokio::{Connector, Listener, Node, RdmaListener, RdmaStream};
use rdmacm_tests::{PATIENCE, SECOND, Site};
use rdmacm_tests_macros::case;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy, copy_bidirectional};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::bytes;
use crate::connector::asynchronous::{on_one_thread, on_threads};

pub(super) async fn pair(
    site: &Site,
    node: &Node,
    options: StreamOptions,
) -> (RdmaStream, RdmaStream) {
    let listener = Listener::options()
        .with_node(node)
        .bind(site.v4(0))
        .unwrap();
    let connector = Connector::new(listener.local_addr()).deadline(PATIENCE);
    let connector = connector.with_node(node);
    let client = tokio::spawn(connector.connect_stream(options.clone()));
    let listener = RdmaListener::new(listener, options);
    // The client may have failed and never come.
    let (server, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    (client.await.unwrap().unwrap(), server)
}

#[case]
fn streams_share_a_node(site: &Site) {
    let options = StreamOptions::new().receive_buffer(8000).send_buffer(8000);
    let options = options.receives(32).sends(32);
    on_threads().block_on(async {
        let node = Node::open().unwrap();
        echo_on_many(site, &node, &options).await;
        echo_on_many(site, &node, &options.shared_receives(64)).await;
    });
}

/// Each of many streams returns what it receives.
async fn echo_on_many(site: &Site, node: &Node, options: &StreamOptions) {
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let (client, server) = pair(site, node, options.clone()).await;
        tasks.spawn(async move {
            let (mut read, mut write) = server.into_split();
            copy(&mut read, &mut write).await.unwrap();
        });
        let (mut read, mut write) = client.into_split();
        tasks.spawn(async move {
            write.write_all(&bytes(50_000)).await.unwrap();
            write.shutdown().await.unwrap();
        });
        tasks.spawn(async move {
            let mut received = Vec::new();
            read.read_to_end(&mut received).await.unwrap();
            assert!(received == bytes(50_000));
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
}

/// What was cancelled is read and written the next time.
#[case]
fn a_cancelled_read_or_write_loses_nothing(site: &Site) {
    let own = StreamOptions::new();
    let shared = StreamOptions::new().receives(64).shared_receives(128);
    on_one_thread().block_on(async {
        for options in [own, shared] {
            cancel(site, options).await;
        }
    });
}

async fn cancel(site: &Site, options: StreamOptions) {
    let node = Node::open().unwrap();
    let (mut client, mut server) = pair(site, &node, options.clone()).await;
    // With shared receives, another stream may take what is this one's.
    let (mut other, mut bystander) = pair(site, &node, options).await;
    for _ in 0..3 {
        let mut byte = [0];
        let read = timeout(SECOND / 50, server.read(&mut byte));
        assert!(read.await.is_err());
    }
    let mut written = 0;
    while let Ok(outcome) = timeout(SECOND / 5, client.write(&bytes(10_000))).await {
        written += outcome.unwrap();
    }
    other.write_all(b"other").await.unwrap();
    bystander.read_exact(&mut [0; 5]).await.unwrap();
    server.read_exact(&mut vec![0; written]).await.unwrap();
    client.write_all(b"more").await.unwrap();
    client.shutdown().await.unwrap();
    let mut rest = Vec::new();
    server.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"more");
    client.close(PATIENCE).await.unwrap();
}

/// A proxy between TCP and RDMA.
#[case]
fn a_proxy_copies_in_both_directions(site: &Site) {
    on_one_thread().block_on(async {
        let node = Node::open().unwrap();
        let (mut inner, server) = pair(site, &node, StreamOptions::new()).await;
        // Not an address of the site: its TCP ports are for the other tests.
        let local = (Ipv4Addr::LOCALHOST, 0);
        let tcp = tokio::net::TcpListener::bind(local).await.unwrap();
        let address = tcp.local_addr().unwrap();
        let proxy = tokio::spawn(async move {
            let (mut outer, _) = tcp.accept().await.unwrap();
            copy_bidirectional(&mut outer, &mut inner).await.unwrap()
        });
        let echo = tokio::spawn(async move {
            let (mut read, mut write) = server.into_split();
            copy(&mut read, &mut write).await.unwrap();
            write.shutdown().await.unwrap();
        });
        let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
        let (mut read, mut write) = client.split();
        let bytes = bytes(200_000);
        let write = async {
            write.write_all(&bytes).await.unwrap();
            write.shutdown().await.unwrap();
        };
        let mut received = Vec::new();
        let ((), count) = tokio::join!(write, read.read_to_end(&mut received));
        assert_eq!(count.unwrap(), 200_000);
        assert!(received == bytes);
        assert_eq!(proxy.await.unwrap(), (200_000, 200_000));
        echo.await.unwrap();
    });
}

/// A task that polls need not be woken: the reply comes during the one poll of its future.
#[case]
fn a_task_with_busy_poll_polls_before_it_sleeps(site: &Site) {
    let listener = rdmacm::RdmaListener::bind(site.v4(0)).unwrap();
    let connector = Connector::new(listener.local_addr().unwrap()).deadline(PATIENCE);
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut server, _) = super::accept(&listener);
            let mut bytes = [0; 4];
            while server.read_exact(&mut bytes).is_ok() {
                server.write_all(&bytes).unwrap();
            }
        });
        on_one_thread().block_on(async {
            let options = StreamOptions::new().busy_poll(10 * SECOND);
            let mut client = connector.connect_stream(options).await.unwrap();
            let mut bytes = [0; 4];
            // siw may not read the first bytes before more arrive, which a task sends that sleeps.
            client.write_all(b"1st.").await.unwrap();
            client.read_exact(&mut bytes).await.unwrap();
            client.write_all(b"ping").await.unwrap();
            let mut context = Context::from_waker(Waker::noop());
            let read = pin!(client.read_exact(&mut bytes));
            match read.poll(&mut context) {
                Poll::Ready(read) => assert_eq!(read.unwrap(), 4),
                Poll::Pending => panic!("the task waits to be woken"),
            }
            assert_eq!(bytes, *b"ping");
            client.close(PATIENCE).await.unwrap();
        });
    });
}
