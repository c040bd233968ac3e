//! Datagrams between IP addresses and ports, as rsockets send them.

use std::net::SocketAddr;

use rdmacm::RdmaDatagram;
use rdmacm_tests::{PATIENCE, Site};

pub(crate) mod cancellation;
pub(crate) mod exchange;
pub(crate) mod refusals;
pub(crate) mod removal;
pub(crate) mod resolution;

fn v4(site: &Site, port: u16) -> SocketAddr {
    (site.v4, port).into()
}

fn v6(site: &Site, port: u16) -> SocketAddr {
    (site.v6, port).into()
}

/// A socket of this address.
fn bound(address: SocketAddr) -> RdmaDatagram {
    patient(RdmaDatagram::bind(address).unwrap())
}

/// A socket to this one alone.
fn connected(server: &RdmaDatagram) -> RdmaDatagram {
    patient(RdmaDatagram::connect(server.local_addr()).unwrap())
}

fn patient(socket: RdmaDatagram) -> RdmaDatagram {
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// The next datagram, and its sender.
fn receive(socket: &RdmaDatagram) -> (Vec<u8>, SocketAddr) {
    let mut bytes = [0; 4096];
    let (length, sender) = socket.recv_from(&mut bytes).unwrap();
    (bytes[..length].to_vec(), sender)
}

/// Sends a datagram to the server and one back, after which each knows the other's queue pair.
fn introduce(client: &RdmaDatagram, server: &RdmaDatagram) {
    client.send_to(b"hello", server.local_addr()).unwrap();
    let hello = (b"hello".to_vec(), client.local_addr());
    assert_eq!(receive(server), hello);
    server.send_to(b"welcome", client.local_addr()).unwrap();
    let welcome = (b"welcome".to_vec(), server.local_addr());
    assert_eq!(receive(client), welcome);
}
