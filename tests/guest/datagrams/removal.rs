//! Sockets whose device is removed, whose address moves to another device, or whose queue pair has
//! failed.

use std::io;
use std::thread;

use rdmacm::core::{CmAddr, EventKind, SidrStatus};
use rdmacm::{Cause, DatagramSocket, Error, Node};
use rdmacm_tests::{PATIENCE, Site};

use super::{is_failure, status};
use crate::link::Link;
use rdmacm_tests_macros::case;

fn bound(address: CmAddr) -> DatagramSocket {
    let socket = DatagramSocket::bind(address).unwrap();
    socket.set_deadline(PATIENCE);
    socket
}

/// The connection manager and the device both report it.
fn check_gone(error: &Error) {
    match error.cause() {
        Cause::Device { error, .. } => assert_eq!(error.kind(), io::ErrorKind::NotConnected),
        Cause::SocketClosed(kind) => assert_eq!(*kind, EventKind::DeviceRemoval),
        other => panic!("{other:?}"),
    }
}

#[case(alone, needs(Datagrams))]
fn device_removal_ends_the_wait(site: &Site) {
    let link = Link::new(site);
    let socket = bound(link.address);
    let group = CmAddr::from(([239, 71, 14, 1], 0));
    let to = socket.join_multicast(group, PATIENCE).unwrap();
    thread::scope(|scope| {
        let waiting = [(); 2].map(|()| scope.spawn(|| socket.recv_from().unwrap_err()));
        link.remove_device();
        for thread in waiting {
            check_gone(&thread.join().unwrap());
        }
    });
    check_gone(&socket.recv_from().unwrap_err());
    check_gone(&socket.send_to(b"anyone?", &to).unwrap_err());
}

#[case(alone, needs(Datagrams))]
fn an_address_change_closes_its_socket(site: &Site) {
    let link = Link::bonded(site);
    let socket = bound(link.address);
    link.fail_over();
    let error = socket.recv_from().unwrap_err();
    let Cause::SocketClosed(EventKind::AddrChange) = error.cause() else {
        panic!("{error:?}");
    };
    assert!(error.to_string().contains("ADDR_CHANGE"), "{error}");
}

/// Peers are not told the number of a queue pair that receives nothing any more.
#[case(alone, needs(Datagrams))]
fn a_socket_that_has_failed_rejects_peers(site: &Site) {
    let link = Link::new(site);
    // The client's wait reads the requests to the server, too.
    let node = Node::open().unwrap();
    let [server, client] = [(); 2].map(|()| {
        let options = DatagramSocket::options().with_node(&node);
        options.bind(link.address).unwrap()
    });
    server.set_deadline(PATIENCE);
    let group = CmAddr::from(([239, 71, 14, 2], 0));
    let to = server.join_multicast(group, PATIENCE).unwrap();
    let error = link.while_down(|| {
        server.send_to(b"lost", &to).unwrap();
        server.flush().unwrap_err()
    });
    assert!(is_failure(error.cause()), "{error:?}");
    thread::scope(|scope| {
        let asking = scope.spawn(|| client.resolve(server.local_addr(), PATIENCE));
        while !asking.is_finished() {
            server.try_recv_from().unwrap_err();
            thread::yield_now();
        }
        let error = asking.join().unwrap().unwrap_err();
        assert_eq!(status(error.cause()), Some(SidrStatus::REJECT), "{error}");
    });
}
