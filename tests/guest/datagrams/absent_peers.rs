//! Datagrams to peers that are not there, as senders may claim to be.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use rdmacm::{Cause, DatagramSocket, Node, Stage};
use rdmacm_tests::{PATIENCE, SECOND, Site};

use super::{asked, bound};
use crate::connector::handshakes::Counted;
use rdmacm_tests_macros::case;

/// The kernel asks for each of them for three seconds.
#[case(alone, needs(Datagrams))]
fn sending_to_many_occupies_no_threads(site: &Site) {
    const ABSENT: u32 = 20;
    let executor = Arc::new(Counted::default());
    let node = Node::options().executor(executor.clone()).open().unwrap();
    let options = DatagramSocket::options().with_node(&node);
    let socket = options.bind(site.v4(0)).unwrap();
    socket.set_deadline(PATIENCE);
    let (_, to) = asked(site, &bound(site));
    let start = Instant::now();
    thread::scope(|scope| {
        for number in 0..ABSENT {
            let ip = Ipv4Addr::from(u32::from(site.silent) - number);
            let mut absent = to;
            absent.ah_attr.grh.destination_gid = ip.to_ipv6_mapped().octets();
            let socket = &socket;
            scope.spawn(move || {
                let error = socket.send_to(b"lost", &absent).unwrap_err();
                assert_eq!(error.stage(), Stage::Send);
                assert!(matches!(error.cause(), Cause::Event(_)), "{error}");
                assert!(error.is_unreachable(), "{error}");
            });
        }
        // Nobody waits for them.
        socket.send_to(b"found", &to).unwrap();
        socket.flush().unwrap();
    });
    // Half of what they take one after the other.
    assert!(start.elapsed() < 30 * SECOND, "{:?}", start.elapsed());
    assert_eq!(executor.0.load(Ordering::Acquire), 0);
}
