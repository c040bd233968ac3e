//! What a forked child does with what it has inherited.

use rdmacm::core::{ConnParam, DeviceId, EventKind, PortSpace, QpType, RdmaDevices};
use rdmacm::verbs::{DeviceSource, QueuePair};
use rdmacm::{CLOSE_DEADLINE, Cause, Error};
use rdmacm_sim::Host;
use rdmacm_test_helpers::child_ends;

use super::{Hosts, SECOND};
use crate::hosts::PORT;

/// The rings of a simulated device are shared with the child.
#[test]
fn a_child_that_drops_a_connection_leaves_that_of_its_parent_alone() {
    for hosts in Hosts::each() {
        let (client, server) = hosts.connect();
        let mut inherited = Some((client, server, hosts));
        assert!(child_ends(|| drop(inherited.take())));
        let (client, server, _hosts) = inherited.unwrap();
        client.send(b"still here").unwrap();
        let message = server.receive().unwrap().unwrap();
        assert_eq!(*message, *b"still here");
    }
}

#[test]
fn a_child_neither_closes_a_connection_of_its_parent_nor_waits_for_its_end() {
    for hosts in Hosts::each() {
        let (client, server) = hosts.connect();
        assert!(child_ends(|| {
            let error = client.closed(None).unwrap_err();
            assert!(matches!(error.cause(), Cause::Device { .. }), "{error}");
            client.close(CLOSE_DEADLINE).unwrap_err();
        }));
        client.send(b"still here").unwrap();
        assert_eq!(*server.receive().unwrap().unwrap(), *b"still here");
    }
}

/// It completes in the parent only.
#[test]
fn a_child_waits_for_no_transfer_of_its_parent() {
    for hosts in Hosts::each() {
        let (client, server) = hosts.connect();
        let buffer = client.allocate(5).unwrap();
        let mut inherited = Some(client.start_send(buffer).unwrap());
        assert!(child_ends(|| {
            let lost = inherited.take().unwrap().wait().unwrap_err();
            let error = Error::from(lost);
            assert!(matches!(error.cause(), Cause::Device { .. }), "{error}");
        }));
        inherited.unwrap().wait().unwrap();
        assert_eq!(*server.receive().unwrap().unwrap(), [0; 5]);
    }
}

fn queue_pair(host: &Host) -> QueuePair {
    let device = host.list().unwrap().remove(0);
    let id = DeviceId {
        index: device.index,
        guid: device.guid,
    };
    let context = DeviceSource::open(host, id).unwrap();
    QueuePair::options(QpType::RC).create(&context).unwrap()
}

/// The request arrives in the parent only.
#[test]
fn a_child_that_accepts_takes_no_peer_from_its_parent() {
    for hosts in Hosts::each() {
        let queue_pair = queue_pair(&hosts.client);
        let channel = hosts.client.channel().unwrap();
        let id = channel.create_id(PortSpace::TCP).unwrap();
        let address = (hosts.server.address().unwrap(), PORT);
        id.resolve_addr(None, address, SECOND).unwrap();
        let event = channel.next_event(SECOND).unwrap();
        assert_eq!(event.kind(), EventKind::AddrResolved);
        id.resolve_route(SECOND).unwrap();
        let event = channel.next_event(SECOND).unwrap();
        assert_eq!(event.kind(), EventKind::RouteResolved);
        hosts.fabric.set_delay(SECOND);
        let param = ConnParam::new().with_queue_pair(&queue_pair);
        id.connect(param.private_data(b"hello").unwrap()).unwrap();
        let sent = hosts.fabric.elapsed();
        assert!(child_ends(|| {
            hosts.listener.accept(2 * SECOND).unwrap_err();
        }));
        assert_eq!(hosts.fabric.elapsed(), sent);
        let incoming = hosts.listener.accept(2 * SECOND).unwrap();
        assert!(incoming.private_data().starts_with(b"hello"));
    }
}
