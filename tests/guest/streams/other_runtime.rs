//! Byte streams on a runtime of the caller's own, by the traits of futures.

use async_io::block_on;
use futures_util::future::join;
use futures_util::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use rdmacm::StreamOptions;
use rdmacm::asynchronous::{Connector, Listener, Node, RdmaListener};
use rdmacm_tests::{PATIENCE, Site};
use rdmacm_tests_macros::case;

use super::bytes;
use reactor::AsyncIo;

#[path = "../../../crates/rdmacm/tests/event_loop/reactor.rs"]
mod reactor;

/// More than fits into the buffers.
const LENGTH: usize = 300_000;

#[case]
fn bytes_are_returned_on_async_io(site: &Site) {
    block_on(async {
        let node = Node::options().runtime::<AsyncIo>().open().unwrap();
        let listener = Listener::options().with_node(&node);
        let listener = listener.bind(site.v4(0)).unwrap();
        let connector = Connector::new(listener.local_addr()).deadline(PATIENCE);
        let connected = connector
            .with_node(&node)
            .connect_stream(StreamOptions::new());
        let listener = RdmaListener::new(listener, StreamOptions::new());
        let echo = async {
            let (stream, _) = listener.accept().await.unwrap();
            let (mut read, mut write) = stream.into_split();
            assert_eq!(copy(&mut read, &mut write).await.unwrap(), LENGTH as u64);
            write.close().await.unwrap();
        };
        let exchange = async {
            let (mut read, mut write) = connected.await.unwrap().into_split();
            let sent = bytes(LENGTH);
            let writing = async {
                write.write_all(&sent).await.unwrap();
                write.close().await.unwrap();
            };
            let mut received = Vec::new();
            let (read, ()) = join(read.read_to_end(&mut received), writing).await;
            assert_eq!(read.unwrap(), LENGTH);
            assert!(received == sent);
        };
        join(echo, exchange).await;
    });
}
