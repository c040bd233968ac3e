//! Deadlines of each stage: the error names the stage, and nothing is left behind.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rdmacm::core::{Gid, IbAddr, IdHandle, PortSpace, Transport};
use rdmacm::{Cause, Connector, Error, QueuePairFactory as _, Stage};
use rdmacm_sim::{Adapter, Fabric, Port, SubnetAdmin};

use crate::hosts::{Hosts, PORT, SECOND, node};
use crate::lookups::HeldLookup;
use crate::queue_pair::QueuePairs;

#[track_caller]
fn assert_deadline(error: &Error, stage: Stage, elapsed: Duration) {
    assert!(matches!(error.cause(), Cause::Deadline), "{error}");
    assert!(error.is_timeout());
    assert_eq!(error.stage(), stage, "{error}");
    assert_eq!(error.elapsed(), elapsed, "{error}");
}

#[test]
fn looking_up_a_name() {
    let hosts = Hosts::roce();
    let lookup = HeldLookup::new(&hosts.client);
    let connector = lookup.connector().deadline(5 * SECOND);
    let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert_eq!(error.stage(), Stage::LookUp);
    assert!(error.to_string().starts_with("look up storage-7:7471: "));
    drop(lookup);
    hosts.assert_client_is_clean();
}

#[test]
fn resolving_an_address() {
    for hosts in Hosts::each() {
        hosts.fabric.set_delay(10 * SECOND);
        let client = node(&hosts.client);
        let connector = hosts.connector(&client).deadline(2 * SECOND);
        let error = connector.resolve().unwrap_err();
        assert_eq!(error.stage(), Stage::ResolveAddress);
        // The kernel has the same deadline.
        assert!(error.is_timeout(), "{error}");
        assert_eq!(error.elapsed(), 2 * SECOND);
        hosts.assert_client_is_clean();
    }
}

/// From a port of the caller's, the addresses are tried in turn.
#[test]
fn an_address_that_has_no_time_left_is_not_tried() {
    for hosts in Hosts::each() {
        hosts.fabric.set_delay(10 * SECOND);
        let client = node(&hosts.client);
        let addresses = [1, 2, 3].map(|port| SocketAddr::from((hosts.address().ip(), port)));
        let source = (hosts.client.address().unwrap(), 5000);
        let connector = Connector::new(&addresses[..]).with_node(&client);
        let connector = connector.source_address(source).deadline(2 * SECOND);
        let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
        assert_eq!(error.stage(), Stage::ResolveAddress);
        assert!(error.is_timeout(), "{error}");
        assert_eq!(error.address(), Some(addresses[0].into()));
        hosts.assert_client_is_clean();
    }
}

#[test]
fn resolving_a_route() {
    let gid = |text: &str| text.parse::<Gid>().unwrap();
    let fabric = Fabric::new();
    let adapter = |gid| Adapter::infiniband("mlx5_0").port(Port::new(gid));
    let host = fabric.host([adapter(gid("fe80::1"))]);
    let _peer = fabric.host([adapter(gid("fe80::2"))]);
    fabric.set_subnet_admin(SubnetAdmin::Silent);
    let address = IbAddr::new(gid("fe80::2")).with_ip_service(PortSpace::TCP, PORT);
    let connector = Connector::new(address).with_node(&node(&host));
    let pairs = QueuePairs::new(Transport::InfiniBand);
    let was_created = AtomicBool::new(false);
    let create = |id: &IdHandle| {
        was_created.store(true, Ordering::Relaxed);
        (&pairs).create(id)
    };
    let error = connector.deadline(2 * SECOND).connect_with(create);
    let error = error.unwrap_err();
    assert!(was_created.load(Ordering::Relaxed), "meanwhile");
    assert_eq!(error.stage(), Stage::ResolveRoute);
    assert!(error.is_timeout(), "{error}");
    assert_eq!(error.elapsed(), 2 * SECOND);
    assert_eq!((host.id_count(), pairs.live()), (0, 0));
}

#[test]
fn connecting() {
    for hosts in Hosts::each() {
        let _listener = hosts.listen(&node(&hosts.server));
        hosts.server.set_responding(false);
        let client = node(&hosts.client);
        let connector = hosts.connector(&client).deadline(3 * SECOND);
        let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
        assert_deadline(&error, Stage::Connect, 3 * SECOND);
        assert_eq!(error.device(), Some(hosts.device()));
        // On iWARP when TCP has given up.
        hosts.assert_client_is_clean();
    }
}

#[test]
fn waiting_for_a_request() {
    for hosts in Hosts::each() {
        let listener = hosts.listen(&node(&hosts.server));
        let error = listener.accept(3600 * SECOND).unwrap_err();
        assert_deadline(&error, Stage::WaitForRequest, 3600 * SECOND);
        assert!(!error.ends_listener());
        drop(listener);
        hosts.assert_server_is_clean();
    }
}

#[test]
fn accepting() {
    let hosts = Hosts::roce();
    let listener = hosts.listen(&node(&hosts.server));
    let client = node(&hosts.client);
    thread::scope(|scope| {
        let connecting = scope.spawn(|| {
            let connector = hosts.connector(&client);
            connector.connect_with(&hosts.client_pairs).unwrap_err()
        });
        let incoming = listener.accept(60 * SECOND).unwrap();
        hosts.client.set_responding(false);
        let accepted = incoming.deadline(2 * SECOND);
        let error = accepted.accept_with(&hosts.server_pairs).unwrap_err();
        assert_deadline(&error, Stage::Accept, 2 * SECOND);
        let error = connecting.join().unwrap();
        assert!(error.is_timeout(), "{error}");
    });
    hosts.assert_client_is_clean();
    drop(listener);
    hosts.assert_server_is_clean();
}

#[test]
fn disconnecting() {
    for hosts in Hosts::each() {
        let listener = hosts.listen(&node(&hosts.server));
        let client = node(&hosts.client);
        let [connection, accepted] = hosts.connect(&client, &listener);
        hosts.server.set_responding(false);
        let closed = connection.close(2 * SECOND);
        if hosts.is_iwarp() {
            // iWARP does not wait for the peer.
            closed.unwrap();
        } else {
            let error = closed.unwrap_err();
            assert_deadline(&error, Stage::Close, 2 * SECOND);
            assert_eq!(error.address(), Some(hosts.address().into()));
        }
        drop(connection);
        hosts.assert_client_is_clean();
        drop((accepted, listener));
        hosts.assert_server_is_clean();
    }
}

#[test]
fn waiting_until_a_connection_is_closed() {
    for hosts in Hosts::each() {
        let listener = hosts.listen(&node(&hosts.server));
        let client = node(&hosts.client);
        let [connection, _accepted] = hosts.connect(&client, &listener);
        let error = connection.closed(60 * SECOND).unwrap_err();
        assert_deadline(&error, Stage::Closed, 60 * SECOND);
        // It is still open.
        let error = connection.closed(60 * SECOND).unwrap_err();
        assert_deadline(&error, Stage::Closed, 60 * SECOND);
    }
}
