//! Memory that a peer reads and writes.

use std::thread;

use rdmacm::core::{AccessFlags, ConnParam};
use rdmacm::verbs::{RemoteMemory, WcStatus};
use rdmacm::{Cause, Connector, Listener, MessageOptions, Stage};

use super::{ALL, Hosts, SECOND, node};
use crate::hosts::with_two_devices;

const OTHER_PORT: u16 = 7472;

#[test]
fn memory_is_read_and_written() {
    for hosts in Hosts::each() {
        let (near, far) = hosts.connect();
        let region = far.expose(16, ALL).unwrap();
        region.write(0, b"to be read");
        let buffer = near.allocate(10).unwrap();
        let buffer = near
            .read(buffer, region.remote().slice(..10).unwrap())
            .unwrap();
        assert_eq!(buffer[..], *b"to be read");
        near.write(buffer, region.remote().slice(6..).unwrap())
            .unwrap();
        let mut bytes = [0; 10];
        region.read(6, &mut bytes);
        assert_eq!(bytes, *b"to be read");
    }
}

#[test]
fn many_reads_are_in_flight() {
    for hosts in Hosts::each() {
        let (near, far) = hosts.connect();
        hosts.fabric.set_delay(SECOND);
        let region = far.expose(64, ALL).unwrap();
        let bytes: Vec<u8> = (0..64).collect();
        region.write(0, &bytes);
        let began = hosts.fabric.now();
        let reads: Vec<_> = (0..8_u64)
            .map(|at| {
                let part = region.remote().slice(8 * at..8 * at + 8).unwrap();
                near.start_read(near.allocate(8).unwrap(), part).unwrap()
            })
            .collect();
        for (number, read) in (0_u8..).zip(reads) {
            assert_eq!(read.wait().unwrap()[0], 8 * number);
        }
        // One way and the other, for all of them.
        assert_eq!(hosts.fabric.now() - began, 2 * SECOND);
    }
}

#[test]
fn memory_that_is_not_exposed_is_not_read() {
    let hosts = Hosts::roce();
    let options = MessageOptions::new();
    for wrong in 0..3 {
        let (near, far) = hosts.connect_with(options.clone(), options.clone());
        let region = far.expose(16, AccessFlags::LOCAL_WRITE).unwrap();
        let remote = region.remote();
        let memory = match wrong {
            // It is registered, for no peer.
            0 => remote,
            1 => RemoteMemory::new(remote.address(), remote.len(), remote.key() ^ 0x100).unwrap(),
            _ => {
                let readable = far.expose(16, ALL).unwrap().remote();
                // Destroyed by now.
                readable
            }
        };
        let error = near.read(near.allocate(16).unwrap(), memory).unwrap_err();
        let Cause::Request(request) = error.error.cause() else {
            panic!("{}", error.error);
        };
        assert_eq!(request.status, WcStatus::REM_ACCESS_ERR);
        assert_eq!(error.error.stage(), Stage::Read);
        // A read that the peer refuses closes the connection.
        near.send(b"more").unwrap_err();
        drop((region, near, far));
    }
    hosts.assert_clean();
}

#[test]
fn more_than_the_peer_exposes_is_not_read() {
    let hosts = Hosts::roce();
    let (near, far) = hosts.connect();
    let region = far.expose(16, ALL).unwrap();
    region.write(0, b"sixteen bytes ..");
    let failed = near
        .read(near.allocate(17).unwrap(), region.remote())
        .unwrap_err();
    assert!(matches!(failed.error.cause(), Cause::Device { .. }));
    assert_eq!(failed.error.stage(), Stage::Read);
    assert_eq!(failed.buffer.unwrap().len(), 17);
    // Nothing was posted: the connection goes on.
    let read = near.read(near.allocate(16).unwrap(), region.remote());
    assert_eq!(read.unwrap()[..], *b"sixteen bytes ..");
    // A peer that claims more memory than it has is found out by its device.
    let remote = region.remote();
    let claimed = RemoteMemory::new(remote.address(), 17, remote.key()).unwrap();
    let failed = near.write(near.allocate(17).unwrap(), claimed).unwrap_err();
    let request = failed.error.failed_request().unwrap();
    assert_eq!(request.status, WcStatus::REM_ACCESS_ERR);
    assert_eq!(failed.buffer.unwrap().len(), 17);
}

#[test]
fn a_key_is_invalid_once_its_region_is_dropped() {
    let hosts = Hosts::roce();
    let (near, far) = hosts.connect();
    let region = far.expose(8, ALL).unwrap();
    let remote = region.remote();
    near.write(near.allocate(8).unwrap(), remote).unwrap();
    drop(region);
    let failed = near
        .write(near.allocate(8).unwrap(), remote)
        .map_err(|failed| failed.error);
    let error = failed.unwrap_err();
    let request = error.failed_request().unwrap();
    assert_eq!(request.status, WcStatus::REM_ACCESS_ERR);
    assert!(error.is_closed(), "{error}");
    drop((near, far));
    hosts.assert_clean();
}

#[test]
fn keys_are_in_the_private_data() {
    for hosts in Hosts::each() {
        let connector = hosts.connector();
        let (near, far, table) = thread::scope(|scope| {
            let accepting = scope.spawn(|| {
                let incoming = hosts.listener.accept(None).unwrap();
                let domain = incoming.protection_domain().unwrap();
                let table = domain.expose(8, ALL).unwrap();
                table.write(0, b"prepared");
                let key = table.remote().to_bytes();
                let param = ConnParam::new().private_data(&key).unwrap();
                let options = MessageOptions::new().protection_domain(&domain);
                let far = incoming.param(param).accept_messages(options).unwrap();
                (far, table)
            });
            let near = connector.connect().unwrap();
            let (far, table) = accepting.join().unwrap();
            (near, far, table)
        });
        let remote = near.private_data().get(..RemoteMemory::SIZE).unwrap();
        let remote = RemoteMemory::from_bytes(remote).unwrap();
        assert_eq!(remote, table.remote());
        let read = near.read(near.allocate(8).unwrap(), remote);
        assert_eq!(read.unwrap()[..], *b"prepared");
        drop((near, far, table));
        hosts.assert_clean();
    }
}

#[test]
fn memory_outlives_its_connection() {
    for hosts in Hosts::each() {
        let (near, far) = hosts.connect();
        near.send(b"keep me").unwrap();
        let kept = far.receive().unwrap().unwrap();
        let buffer = far.allocate(3).unwrap();
        let region = far.expose(8, ALL).unwrap();
        drop((near, far));
        assert_eq!(kept[..], *b"keep me");
        assert_eq!(buffer[..], [0; 3]);
        region.write(0, b"writable");
        drop((kept, buffer, region));
        hosts.assert_clean();
    }
}

#[test]
fn connections_of_one_domain_share_memory() {
    for hosts in Hosts::each() {
        let (near, far) = hosts.connect();
        let domain = far.protection_domain().clone();
        let table = domain.expose(8, ALL).unwrap();
        table.write(0, b"shared!!");
        let options = MessageOptions::new().protection_domain(&domain);
        let (other, other_far) = hosts.connect_with(MessageOptions::new(), options);
        for connection in [&near, &other] {
            let bytes = connection.read(connection.allocate(8).unwrap(), table.remote());
            assert_eq!(bytes.unwrap()[..], *b"shared!!");
        }
        drop((near, far, other, other_far, table, domain));
        hosts.assert_clean();
    }
}

#[test]
fn memory_is_exposed_before_the_first_client() {
    for hosts in Hosts::each() {
        let node = node(&hosts.server);
        let [device] = &node.rdma_devices().unwrap()[..] else {
            panic!("one device");
        };
        let domain = node.protection_domain(device).unwrap();
        let table = domain.expose(16, ALL).unwrap();
        table.write(0, b"before any peer.");
        let listener = Listener::options().with_node(&node);
        let listener = listener.bind((hosts.server.address().unwrap(), OTHER_PORT));
        let listener = listener.unwrap();
        let connector = Connector::new(listener.local_addr()).with_node(&hosts.client_node);
        let (near, _far) = thread::scope(|scope| {
            let accepting = scope.spawn(|| {
                let options = MessageOptions::new().protection_domain(&domain);
                listener.accept(None).unwrap().accept_messages(options)
            });
            let near = connector.connect().unwrap();
            (near, accepting.join().unwrap().unwrap())
        });
        let read = near.read(near.allocate(16).unwrap(), table.remote());
        assert_eq!(read.unwrap()[..], *b"before any peer.");
    }
}

/// The kernel would accept its queue pair, which could not carry anything.
#[test]
fn a_domain_of_another_device_is_refused() {
    let [server, client] = with_two_devices().map(|host| node(&host));
    let devices = client.rdma_devices().unwrap();
    let other = devices.iter().find(|device| device.name == "rxe1");
    let domain = client.protection_domain(other.unwrap()).unwrap();
    let options = MessageOptions::new().protection_domain(&domain);
    let listener = Listener::options().with_node(&server);
    let listener = listener.bind(([10, 1, 0, 7], OTHER_PORT)).unwrap();
    let connector = Connector::new(listener.local_addr()).with_node(&client);
    let from_first = connector.clone().source_device("rxe0");
    let error = from_first.connect_messages(options.clone()).unwrap_err();
    assert_eq!(error.stage(), Stage::QueuePair);
    assert!(error.to_string().contains("does not lead there"), "{error}");
    for (options, device) in [(options, "rxe1"), (MessageOptions::new(), "rxe0")] {
        let near = thread::scope(|scope| {
            let accepting = scope.spawn(|| listener.accept(None).unwrap().accept().unwrap());
            let connector = connector.clone().source_device(device);
            let near = connector.connect_messages(options).unwrap();
            near.send(b"arrives").unwrap();
            let far = accepting.join().unwrap();
            assert_eq!(far.receive().unwrap().unwrap()[..], *b"arrives");
            near
        });
        assert_eq!(near.protection_domain().context().device_name(), device);
    }
}

#[test]
fn a_removed_device_has_no_protection_domain() {
    let hosts = Hosts::roce();
    let node = node(&hosts.server);
    let device = node.rdma_devices().unwrap().remove(0);
    hosts.server.remove_device(&device.name);
    assert!(node.rdma_devices().unwrap().is_empty());
    let error = node.protection_domain(&device).unwrap_err();
    assert_eq!(error.stage(), Stage::Register);
    assert_eq!(error.device(), Some("rxe0"));
}
