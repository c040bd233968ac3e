//! What is refused.

use std::io::ErrorKind;
use std::net::UdpSocket;

use rdmacm::{Cause, RdmaDatagram};
use rdmacm_tests::Site;
use rdmacm_tests_macros::case;

use super::{bound, connected, introduce, v4, v6};

#[case(alone, needs(Datagrams))]
fn a_longer_datagram(site: &Site) {
    let server = bound(v4(site, 0));
    let client = connected(&server);
    let longest = client.max_datagram();
    let error = client.send(&vec![7; longest + 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    introduce(&client, &server);
}

#[case(alone, needs(Datagrams))]
fn an_address_of_the_other_family(site: &Site) {
    let socket = bound(v4(site, 0));
    let error = socket.send_to(b"hello", v6(site, 7174)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
}

#[case(alone, needs(Datagrams))]
fn sending_to_no_peer(site: &Site) {
    let socket = bound(v4(site, 0));
    let error = socket.send(b"hello").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotConnected, "{error}");
}

#[case(alone, needs(Datagrams))]
fn a_port_that_is_taken(site: &Site) {
    let taken = UdpSocket::bind(v4(site, 0)).unwrap();
    let error = RdmaDatagram::bind(taken.local_addr().unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
    let socket = bound(v4(site, 0));
    let error = RdmaDatagram::bind(socket.local_addr()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
}

#[case(needs(Datagrams))]
fn a_wildcard_address(_: &Site) {
    let error = RdmaDatagram::bind("0.0.0.0:0").unwrap_err();
    assert!(error.to_string().contains("is of one device"), "{error}");
}

#[case(needs(TcpHandshake))]
fn iwarp(site: &Site) {
    let error = RdmaDatagram::bind(v4(site, 0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let error = error.get_ref().unwrap();
    let error = error.downcast_ref::<rdmacm::Error>().unwrap();
    assert!(matches!(error.cause(), Cause::QueuePair(_)), "{error}");
}
