//! Connect requests and their child ids.

use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, poll};
use rdmacm_core::{ConnParam, EventKind, PortSpace, QpType};
use rdmacm_tests::{Listening, PATIENCE, Side, Site, Soft};
use rdmacm_tests_macros::case;

/// The peer's private data.
const HELLO: &[u8] = b"hello, version 1";

fn connect(site: &Site) -> (Side, Listening) {
    let listener = site.listening(PortSpace::TCP);
    let peer = site.side(&listener);
    let param = ConnParam::new().private_data(HELLO).unwrap();
    peer.id
        .with_queue_pair(&peer.queue_pair)
        .connect(param)
        .unwrap();
    (peer, listener)
}

/// Rejected with the reason for a consumer's rejection.
fn expect_rejection(site: &Site, peer: &Side) {
    const CONSUMER_DEFINED: i32 = 28;
    let event = peer.channel.next_event(PATIENCE).unwrap();
    assert_eq!(event.kind(), EventKind::Rejected);
    let status = match site.soft {
        Soft::Rxe => CONSUMER_DEFINED,
        Soft::Siw => -libc::ECONNRESET,
    };
    assert_eq!(event.status(), status);
}

#[case]
fn a_child_has_its_listeners_port_space_and_qp_type(site: &Site) {
    let (peer, listener) = connect(site);
    let child = listener.next_request().into_child().unwrap();
    assert_eq!(child.port_space(), PortSpace::TCP);
    assert_eq!(child.qp_type(), QpType::RC);
    assert_eq!(child.local_addr(), listener.id.local_addr());
    assert!(child.peer_addr().unwrap().is_some());
    drop(child);
    expect_rejection(site, &peer);
}

#[case]
fn private_data_fills_its_field(site: &Site) {
    let (_peer, listener) = connect(site);
    let request = listener.next_request();
    let (hello, padding) = request.private_data().split_at(HELLO.len());
    assert_eq!(hello, HELLO);
    let field = match site.soft {
        Soft::Rxe => 56,
        // iWARP's message contains its length.
        Soft::Siw => HELLO.len(),
    };
    assert_eq!(padding.len(), field - HELLO.len());
    assert!(padding.iter().all(|byte| *byte == 0));
}

#[case]
fn a_request_dropped_untaken_is_rejected(site: &Site) {
    let (peer, listener) = connect(site);
    drop(listener.next_request());
    expect_rejection(site, &peer);
}

#[case]
fn a_request_of_a_dropped_listener_is_rejected(site: &Site) {
    let (peer, Listening { channel, id }) = connect(site);
    let mut fds = [PollFd::new(channel.as_fd(), PollFlags::POLLIN)];
    assert_eq!(poll(&mut fds, 30_000_u16).unwrap(), 1);
    drop(id);
    assert!(channel.try_next_event().unwrap().is_none());
    expect_rejection(site, &peer);
}

#[case]
fn a_child_outlives_its_listener(site: &Site) {
    let (peer, listener) = connect(site);
    let request = listener.next_request();
    let Listening { channel, id } = listener;
    drop(id);
    let child = request.into_child().unwrap();
    assert!(child.addresses().unwrap().device.is_some());
    assert!(channel.next_event(Duration::ZERO).is_err());
    drop(child);
    expect_rejection(site, &peer);
}
