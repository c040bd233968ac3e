//! A name server that never answers.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Instant;

use rdmacm_addrinfo::{Error, NameError};
use rdmacm_core::AddressAbi;
use rdmacm_tests::{SECOND, Site};

use super::private_etc::PrivateEtc;
use super::{rc, resolve};
use rdmacm_tests_macros::case;

/// Receives every query, with an `/etc` that directs queries to it.
fn silent_server(address: Ipv4Addr) -> (UdpSocket, PrivateEtc) {
    let server = UdpSocket::bind((address, 53)).unwrap();
    server.set_read_timeout(Some(30 * SECOND)).unwrap();
    let etc = PrivateEtc::new()
        .file("nsswitch.conf", "hosts: files dns\n")
        .file(
            "resolv.conf",
            &format!("nameserver {address}\noptions timeout:30\n"),
        );
    (server, etc)
}

#[case]
fn the_deadline_ends_a_lookup() {
    let (server, etc) = silent_server(Ipv4Addr::new(127, 0, 0, 11));
    let site = Site::rxe(AddressAbi::AnyFamily);
    etc.run(|| {
        let started = Instant::now();
        let found = resolve(&site, "nobody.test", "7471", &rc().deadline(SECOND));
        let elapsed = started.elapsed();
        assert_eq!(found, Err(Error::LookupDeadline));
        // The C library would wait for 30 seconds, twice.
        assert!(elapsed >= SECOND && elapsed < 30 * SECOND, "{elapsed:?}");
    });
    let mut question = [0; 512];
    let length = server.recv(&mut question).unwrap();
    let asked = String::from_utf8_lossy(&question[..length]);
    assert!(asked.contains("nobody"), "{asked}");
}

#[case]
fn a_numeric_host_sends_no_query() {
    let (server, etc) = silent_server(Ipv4Addr::new(127, 0, 0, 12));
    let site = Site::rxe(AddressAbi::AnyFamily);
    let found = etc.run(|| resolve(&site, "nobody.test", "7471", &rc().numeric_host()));
    assert_eq!(found, Err(Error::Name(NameError::NoName)));
    server.set_nonblocking(true).unwrap();
    let error = server.recv(&mut [0; 512]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}
