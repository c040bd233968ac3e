//! A peer's disconnect overtakes its `ESTABLISHED` message.

use std::sync::Arc;
use std::thread;

use rdmacm::core::{ChannelOptions, EventChannel, EventKind};
use rdmacm::{Connector, Listener, Node};
use rdmacm_tests::{PATIENCE, Site, Unestablished};

use crate::connector::asynchronous::on_one_thread;
use crate::queue_pairs::QueuePairs;
use rdmacm_tests_macros::case;

fn unestablished() -> ChannelOptions {
    options(Arc::new(Unestablished::new()))
}

fn options(device: Arc<Unestablished>) -> ChannelOptions {
    EventChannel::options().ucma(device)
}

#[case]
fn a_disconnected_peer_counts_as_connected(site: &Site) {
    let node = Node::options().channel(unestablished()).open().unwrap();
    let listener = Listener::options()
        .with_node(&node)
        .bind(site.v4(0))
        .unwrap();
    let connector = Connector::new(listener.local_addr()).deadline(PATIENCE);
    let queue_pairs = QueuePairs::new(site);
    thread::scope(|scope| {
        let parting = scope.spawn(|| {
            let client = connector.connect_with(queue_pairs.clone()).unwrap();
            client.close(PATIENCE).unwrap();
        });
        let incoming = listener.accept(PATIENCE).unwrap();
        let peer = incoming.peer();
        let server = incoming.accept_with(queue_pairs.clone()).unwrap();
        assert_eq!(server.peer(), peer);
        let end = server.closed(PATIENCE).unwrap();
        assert_eq!((end.kind(), end.failure()), (EventKind::Disconnected, None));
        server.close(PATIENCE).unwrap();
        parting.join().unwrap();
    });
}

#[case]
fn a_disconnected_peer_counts_as_connected_on_tokio(site: &Site) {
    on_one_thread().block_on(async {
        let node = rdmacm::tokio::Node::options().channel(unestablished());
        let node = node.open().unwrap();
        let listener = rdmacm::tokio::Listener::options().with_node(&node);
        let listener = listener.bind(site.v4(0)).unwrap();
        let connector = rdmacm::tokio::Connector::new(listener.local_addr());
        let queue_pairs = QueuePairs::new(site);
        let theirs = queue_pairs.clone();
        let parting = tokio::spawn(async move {
            let client = connector.deadline(PATIENCE).connect_with(theirs);
            client.await.unwrap().close(PATIENCE).await.unwrap();
        });
        let incoming = listener.accept(PATIENCE).await.unwrap();
        let server = incoming.accept_with(queue_pairs).await.unwrap();
        let end = server.closed(PATIENCE).await.unwrap();
        assert_eq!((end.kind(), end.failure()), (EventKind::Disconnected, None));
        parting.await.unwrap();
    });
}

/// siw loses a message that arrives, followed by a disconnect, while it accepts
/// (`siw_cm_llp_data_ready`).
#[case]
fn data_sent_before_the_disconnect_arrive(site: &Site) {
    let device = Arc::new(Unestablished::new());
    let node = Node::options()
        .channel(options(Arc::clone(&device)))
        .open()
        .unwrap();
    let listener = Listener::options()
        .with_node(&node)
        .bind(site.v4(0))
        .unwrap();
    let connector = Connector::new(listener.local_addr()).deadline(PATIENCE);
    thread::scope(|scope| {
        let parting = scope.spawn(|| {
            let client = connector.connect().unwrap();
            client.set_deadline(PATIENCE);
            device.wait_for_accept();
            client.send(b"in passing").unwrap();
            client.close(PATIENCE).unwrap();
        });
        let server = listener.accept(PATIENCE).unwrap().accept().unwrap();
        server.set_deadline(PATIENCE);
        assert_eq!(*server.receive().unwrap().unwrap(), *b"in passing");
        assert!(server.receive().unwrap().is_none());
        parting.join().unwrap();
    });
}
