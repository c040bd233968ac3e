//! Sockets whose device is removed, or whose address moves to another device.

use std::io;
use std::thread;

use rdmacm::core::{CmAddr, EventKind};
use rdmacm::{Cause, DatagramSocket, Error};
use rdmacm_tests::{PATIENCE, Site};

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
