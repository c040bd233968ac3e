//! Connections whose device is removed or whose peer dies.

use std::io;
use std::thread;

use rdmacm::core::CmAddr;
use rdmacm::{Cause, Connector, Listener, Message, MessageOptions};
use rdmacm_tests::{PATIENCE, SECOND, Site, Soft};
use rdmacm_verbs::WcStatus;

use super::Pair;
use crate::connector::asynchronous::{on_one_thread, on_threads};
use crate::link::Link;
use rdmacm_tests_macros::case;

/// Both sides of a connection on a device of the test's own.
fn pair_on(link: &Link, options: &MessageOptions) -> Pair {
    let listener = Listener::options();
    let listener = listener.bind(link.address).unwrap();
    let connector = Connector::new(listener.local_addr()).deadline(PATIENCE);
    thread::scope(|scope| {
        let client = scope.spawn(|| connector.connect_messages(options.clone()).unwrap());
        let server = listener
            .accept(PATIENCE)
            .unwrap()
            .accept_messages(options.clone())
            .unwrap();
        Pair {
            client: client.join().unwrap(),
            server,
        }
    })
}

/// How a device's removal appears: as the removal, or as the disconnect of a peer that
/// closed the same device first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RemovalSeen {
    DeviceGone,
    PeerClosed,
}

/// Like [`removal_seen`], for the result of `receive`.
fn seen_by_receive(received: rdmacm::Result<Option<Message>>) -> RemovalSeen {
    match received {
        Ok(None) => RemovalSeen::PeerClosed,
        Ok(Some(message)) => panic!("{message:?}"),
        Err(error) => removal_seen(error),
    }
}

pub(crate) fn removal_seen(error: rdmacm::Error) -> RemovalSeen {
    assert!(error.is_closed(), "{error}");
    let seen = match error.cause() {
        Cause::Device { error, .. } if error.kind() == io::ErrorKind::NotConnected => {
            RemovalSeen::DeviceGone
        }
        // The device's end was detected first.
        Cause::Closed(ending) if ending.failure().is_some() => RemovalSeen::DeviceGone,
        Cause::Closed(_) => RemovalSeen::PeerClosed,
        other => panic!("{other:?}"),
    };
    let kind = match seen {
        RemovalSeen::DeviceGone => io::ErrorKind::NotConnected,
        RemovalSeen::PeerClosed => io::ErrorKind::ConnectionReset,
    };
    assert_eq!(io::Error::from(error).kind(), kind);
    seen
}

#[case(alone)]
fn device_removal_ends_a_blocking_wait(site: &Site) {
    let link = Link::new(site);
    let Pair { client, server } = pair_on(&link, &MessageOptions::new());
    thread::scope(|scope| {
        // Each side closes the device when it has detected the removal.
        let passive = scope.spawn(move || seen_by_receive(server.receive()));
        let active = scope.spawn(move || {
            let told_both = thread::scope(|scope| {
                let waiting = [(); 2].map(|()| scope.spawn(|| seen_by_receive(client.receive())));
                waiting.map(|thread| thread.join().unwrap())
            });
            removal_seen(client.send(b"anyone?").unwrap_err());
            assert!(client.close(SECOND).is_ok());
            told_both
        });
        link.remove_device();
        let [one, other] = active.join().unwrap();
        let seen = [one, other, passive.join().unwrap()];
        assert!(seen.contains(&RemovalSeen::DeviceGone), "{seen:?}");
    });
}

#[case(alone)]
fn device_removal_ends_a_wait_on_tokio(site: &Site) {
    for runtime in [on_threads(), on_one_thread()] {
        let link = Link::new(site);
        let address: CmAddr = link.address;
        runtime.block_on(async {
            let listener = rdmacm::tokio::Listener::bind(address).unwrap();
            let connector = rdmacm::tokio::Connector::new(listener.local_addr());
            let client = tokio::spawn(connector.deadline(PATIENCE).connect());
            let server = listener.accept(PATIENCE).await.unwrap();
            let server = server.accept().await.unwrap();
            let client = client.await.unwrap().unwrap();
            // Each side closes the device when it has detected the removal.
            let last_error = async |connection: rdmacm::tokio::Connection| {
                seen_by_receive(connection.receive().await)
            };
            let removing = link.remove_device_beside_tasks();
            let (one, other, ()) = tokio::join!(last_error(client), last_error(server), removing);
            let seen = [one, other];
            assert!(seen.contains(&RemovalSeen::DeviceGone), "{seen:?}");
        });
    }
}

#[case(alone, needs(NeighbourUpdates))]
fn keepalive_detects_a_silent_peer(site: &Site) {
    assert_eq!(site.soft, Soft::Rxe);
    let link = Link::new(site);
    let options = MessageOptions::new().keep_alive(SECOND / 5);
    let listener = Listener::options().ack_timeout(15);
    let listener = listener.bind(link.address).unwrap();
    let connector = Connector::new(listener.local_addr()).ack_timeout(15);
    let connector = connector.deadline(PATIENCE);
    let pair = thread::scope(|scope| {
        let client = scope.spawn(|| connector.connect_messages(options.clone()).unwrap());
        let server = listener
            .accept(PATIENCE)
            .unwrap()
            .accept_messages(options.clone())
            .unwrap();
        (client.join().unwrap(), server)
    });
    let (client, server) = pair;
    client.set_deadline(PATIENCE);
    server.set_deadline(SECOND);
    // Lost packets are not detected while there is a path.
    assert!(server.receive().unwrap_err().is_timeout());
    // The peer's device no longer answers.
    server
        .id()
        .with_queue_pair(server.queue_pair())
        .move_to_error()
        .unwrap();
    let error = client.receive().unwrap_err();
    match error.cause() {
        Cause::Request(error) => assert_eq!(error.status, WcStatus::RETRY_EXC_ERR),
        other => panic!("{other:?}"),
    }
}
