//! Messages, reads and writes of connections.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rdmacm::core::{AccessFlags, EventChannel};
use rdmacm::verbs::WcStatus;
use rdmacm::{CLOSE_DEADLINE, Cause, Connection, Connector, Listener, Node};
use rdmacm_sim::{Fabric, Host};

use crate::hosts::PORT;

/// A node of a simulated host.
fn node(host: &Host) -> Node {
    let channel = EventChannel::options().ucma(host.open().unwrap());
    let channel = channel.devices(Arc::new(host.clone()));
    let options = Node::options().channel(channel);
    options
        .device_source(Arc::new(host.clone()))
        .open()
        .unwrap()
}

/// Two hosts, of which the second listens.
struct Hosts {
    fabric: Fabric,
    client: Host,
    server: Host,
}

impl Hosts {
    fn roce() -> Self {
        let fabric = Fabric::roce(["client", "server"]).seed(7);
        let [client, server] = ["client", "server"].map(|name| fabric.find_host(name).unwrap());
        Self {
            fabric,
            client,
            server,
        }
    }

    fn listen(&self) -> Listener {
        let address = (self.server.address().unwrap(), PORT);
        let options = Listener::options().with_node(&node(&self.server));
        options.bind(address).unwrap()
    }

    /// Two connected ends: the client's and the server's.
    fn connect(&self) -> (Connection, Connection) {
        let listener = self.listen();
        let accept = thread::spawn(move || {
            let incoming = listener.accept(None).unwrap();
            incoming.accept().unwrap()
        });
        let address = (self.server.address().unwrap(), PORT);
        let connector = Connector::new(address).with_node(&node(&self.client));
        let near = connector.connect().unwrap();
        (near, accept.join().unwrap())
    }
}

#[test]
fn messages_are_exchanged() {
    let hosts = Hosts::roce();
    let (near, far) = hosts.connect();
    let echo = thread::spawn(move || {
        while let Some(message) = far.receive().unwrap() {
            far.send(&message).unwrap();
        }
    });
    for number in 0..100_u8 {
        near.send(&[number; 17]).unwrap();
        assert_eq!(*near.receive().unwrap().unwrap(), [number; 17]);
    }
    near.close(CLOSE_DEADLINE).unwrap();
    echo.join().unwrap();
}

#[test]
fn messages_arrive_late_but_all() {
    let hosts = Hosts::roce();
    let (near, far) = hosts.connect();
    hosts.fabric.set_delay(Duration::from_secs(1));
    let begin = hosts.fabric.now();
    let sender = thread::spawn(move || {
        near.send(b"late").unwrap();
        near.flush().unwrap();
        near
    });
    assert_eq!(*far.receive().unwrap().unwrap(), *b"late");
    assert!(hosts.fabric.now().duration_since(begin) >= Duration::from_secs(1));
    drop(sender.join().unwrap());
}

#[test]
fn memory_is_read_and_written() {
    let hosts = Hosts::roce();
    let (near, far) = hosts.connect();
    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_READ | AccessFlags::REMOTE_WRITE;
    let region = far.expose(16, access).unwrap();
    region.write(0, b"to be read");
    let buffer = near.allocate(10).unwrap();
    let buffer = near
        .read(buffer, region.remote().part(..10).unwrap())
        .unwrap();
    assert_eq!(buffer[..], *b"to be read");
    near.write(buffer, region.remote().part(6..).unwrap())
        .unwrap();
    let mut bytes = [0; 10];
    region.read(6, &mut bytes);
    assert_eq!(bytes, *b"to be read");
}

#[test]
fn a_peer_that_does_not_respond_fails_what_is_sent() {
    let hosts = Hosts::roce();
    let (near, _far) = hosts.connect();
    hosts.server.set_responding(false);
    let begin = hosts.fabric.now();
    near.send(b"lost").unwrap();
    let error = near.flush().unwrap_err();
    let Cause::Request(request) = error.cause() else {
        panic!("{error}");
    };
    assert_eq!(request.status, WcStatus::RETRY_EXC_ERR);
    assert!(hosts.fabric.now() > begin);
}

#[test]
fn a_peer_that_disconnects_ends_the_messages() {
    let hosts = Hosts::roce();
    let (near, far) = hosts.connect();
    let peer = thread::spawn(move || {
        far.send(b"last").unwrap();
        far.close(CLOSE_DEADLINE).unwrap();
    });
    assert_eq!(*near.receive().unwrap().unwrap(), *b"last");
    assert!(near.receive().unwrap().is_none());
    drop(near);
    peer.join().unwrap();
}
