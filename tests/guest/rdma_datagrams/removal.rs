//! A socket whose device is removed.

use std::io::ErrorKind;
use std::thread;

use rdmacm_tests::Site;
use rdmacm_tests_macros::case;

use super::bound;
use crate::link::Link;

#[case(alone, needs(Datagrams))]
fn device_removal_ends_the_wait(site: &Site) {
    let link = Link::new(site);
    let socket = bound(link.address.socket_addr().unwrap());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| socket.recv_from(&mut [0]).unwrap_err());
        link.remove_device();
        let error = waiting.join().unwrap();
        assert_eq!(error.kind(), ErrorKind::NotConnected, "{error}");
    });
    let error = socket.recv_from(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotConnected, "{error}");
}
