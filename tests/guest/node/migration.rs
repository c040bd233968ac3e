//! Migrating to another node.

use std::thread;

use rdmacm::core::EventKind;
use rdmacm::{Connector, Listener, Node};
use rdmacm_tests::{PATIENCE, Site};

use crate::queue_pairs::QueuePairs;
use rdmacm_tests_macros::case;

fn connector(listener: &Listener) -> Connector {
    Connector::new(listener.local_addr()).deadline(PATIENCE)
}

#[case]
fn a_listener_moves_with_its_queued_requests(site: &Site) {
    let (here, there) = (Node::open().unwrap(), Node::open().unwrap());
    let mut listener = Listener::options()
        .with_node(&here)
        .bind(site.v4(0))
        .unwrap();
    let queue_pairs = QueuePairs::new(site);
    thread::scope(|scope| {
        let clients = [(); 3].map(|()| {
            let (connector, queue_pairs) = (connector(&listener), queue_pairs.clone());
            scope.spawn(move || connector.connect_with(queue_pairs).unwrap())
        });
        // One request is read here, perhaps with others; the rest is unread.
        let first = listener.accept(PATIENCE).unwrap();
        listener.migrate(&there).unwrap();
        let mut servers = vec![first.accept_with(queue_pairs.clone()).unwrap()];
        drop(here);
        for _ in 1..clients.len() {
            let incoming = listener.accept(PATIENCE).unwrap();
            servers.push(incoming.accept_with(queue_pairs.clone()).unwrap());
        }
        let clients = clients.map(|client| client.join().unwrap());
        drop(clients);
        for server in servers {
            let end = server.closed(PATIENCE).unwrap();
            assert_eq!(end.kind(), EventKind::Disconnected);
        }
    });
}

#[case]
fn a_connection_moves_with_its_unread_events(site: &Site) {
    let (here, there) = (Node::open().unwrap(), Node::open().unwrap());
    let listener = Listener::bind(site.v4(0)).unwrap();
    let queue_pairs = QueuePairs::new(site);
    let (mut client, server) = thread::scope(|scope| {
        let connector = connector(&listener).with_node(&here);
        let client = scope.spawn(|| connector.connect_with(queue_pairs.clone()).unwrap());
        let incoming = listener.accept(PATIENCE).unwrap();
        let server = incoming.accept_with(queue_pairs.clone()).unwrap();
        (client.join().unwrap(), server)
    });
    drop(server);
    client.migrate(&there).unwrap();
    drop(here);
    let end = client.closed(PATIENCE).unwrap();
    assert_eq!(end.kind(), EventKind::Disconnected);
}

#[case]
fn a_connection_moves_there_and_back(site: &Site) {
    let (here, there) = (Node::open().unwrap(), Node::open().unwrap());
    let mut listener = Listener::options()
        .with_node(&here)
        .bind(site.v4(0))
        .unwrap();
    let queue_pairs = QueuePairs::new(site);
    for node in [&there, &here, &there, &here] {
        listener.migrate(node).unwrap();
        thread::scope(|scope| {
            let connector = connector(&listener);
            let client = scope.spawn(|| connector.connect_with(queue_pairs.clone()).unwrap());
            let incoming = listener.accept(PATIENCE).unwrap();
            drop(incoming.accept_with(queue_pairs.clone()).unwrap());
            drop(client.join().unwrap());
        });
    }
}

/// Another thread reads the old channel at the same time.
#[case]
fn an_event_read_while_its_connection_moves_is_not_lost(site: &Site) {
    let (here, there) = (Node::open().unwrap(), Node::open().unwrap());
    let busy = Listener::options()
        .with_node(&here)
        .bind(site.v4(0))
        .unwrap();
    let listener = Listener::bind(site.v4(0)).unwrap();
    let queue_pairs = QueuePairs::new(site);
    thread::scope(|scope| {
        let reading = scope.spawn(|| busy.accept(PATIENCE).is_err());
        for _ in 0..20 {
            let connector = connector(&listener).with_node(&here);
            let client = scope.spawn(|| connector.connect_with(queue_pairs.clone()).unwrap());
            let incoming = listener.accept(PATIENCE).unwrap();
            let server = incoming.accept_with(queue_pairs.clone()).unwrap();
            let mut client = client.join().unwrap();
            let parting = scope.spawn(move || drop(server));
            client.migrate(&there).unwrap();
            let end = client.closed(PATIENCE).unwrap();
            assert_eq!(end.kind(), EventKind::Disconnected);
            parting.join().unwrap();
        }
        busy.stop();
        assert!(reading.join().unwrap());
    });
}
