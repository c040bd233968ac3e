//! The end of connections that carry messages.

use std::sync::Arc;
use std::thread;

use rdmacm::core::EventKind;
use rdmacm::{CLOSE_DEADLINE, Cause, Node, Stage, StopGroup};
use rdmacm_abi::EventNumber;

use super::backpressure::few;
use super::{Hosts, SECOND};
use crate::address_change;

#[test]
fn a_peer_that_disconnects_ends_the_messages() {
    for hosts in Hosts::each() {
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
}

#[test]
fn what_was_sent_arrives_before_the_end() {
    for hosts in Hosts::each() {
        let (near, far) = hosts.connect();
        hosts.fabric.set_delay(SECOND);
        thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                let mut count = 0;
                while far.receive().unwrap().is_some() {
                    count += 1;
                }
                count
            });
            for _ in 0..20 {
                near.send(b"before the end").unwrap();
            }
            near.close(60 * SECOND).unwrap();
            assert_eq!(receiving.join().unwrap(), 20);
        });
        drop((near, far));
        hosts.assert_clean();
    }
}

/// They are in the completion queue, and the peer knows that they have arrived.
#[test]
fn messages_that_have_arrived_are_received_after_the_device_was_removed() {
    for (hosts, device) in Hosts::each().into_iter().zip(["rxe0", "siw0"]) {
        let (near, far) = hosts.connect();
        for text in [b"one", b"two"] {
            far.send(text).unwrap();
        }
        far.flush().unwrap();
        hosts.client.remove_device(device);
        let error = near.send(b"late").unwrap_err();
        assert!(matches!(error.cause(), Cause::Device { .. }), "{error}");
        for text in [b"one", b"two"] {
            assert_eq!(*near.receive().unwrap().unwrap(), *text);
        }
        let error = near.receive().unwrap_err();
        assert!(matches!(error.cause(), Cause::Device { .. }), "{error}");
    }
}

#[test]
fn closing_wakes_all_callers_of_this_side() {
    for hosts in Hosts::each() {
        let (near, far) = hosts.connect();
        thread::scope(|scope| {
            let peer = scope.spawn(|| far.receive().unwrap());
            let receiving = [(); 3].map(|()| scope.spawn(|| near.receive().unwrap()));
            let closed = scope.spawn(|| near.closed(None).unwrap());
            near.close(CLOSE_DEADLINE).unwrap();
            for receiving in receiving {
                assert!(receiving.join().unwrap().is_none());
            }
            assert!(closed.join().unwrap().is_orderly());
            assert!(peer.join().unwrap().is_none());
        });
        let error = near.send(b"late").unwrap_err();
        assert_eq!(error.stage(), Stage::Send);
        drop((near, far));
        hosts.assert_clean();
    }
}

#[test]
fn stopping_wakes_callers_and_leaves_the_peer() {
    for hosts in Hosts::each() {
        let (near, far) = hosts.connect();
        let stop = near.stop_handle();
        thread::scope(|scope| {
            let receiving = scope.spawn(|| near.receive().unwrap());
            stop.stop();
            assert!(receiving.join().unwrap().is_none());
        });
        let error = near.send(b"late").unwrap_err();
        assert!(matches!(error.cause(), Cause::Stopped), "{error}");
        assert!(far.try_receive().unwrap().is_none());
        far.send(b"unread").unwrap();
        far.flush().unwrap();
        drop(near);
        assert!(far.receive().unwrap().is_none());
    }
}

#[test]
fn both_sides_may_close_at_once() {
    for hosts in Hosts::each() {
        let (near, far) = hosts.connect();
        thread::scope(|scope| {
            let closing = [&near, &far].map(|side| scope.spawn(|| side.close(CLOSE_DEADLINE)));
            for closing in closing {
                closing.join().unwrap().unwrap();
            }
        });
        drop((near, far));
        hosts.assert_clean();
    }
}

#[test]
fn a_lost_peer_fails_the_close_at_its_deadline() {
    let hosts = Hosts::roce();
    let (near, _far) = hosts.connect();
    hosts.server.set_responding(false);
    let began = hosts.fabric.now();
    let error = near.close(2 * SECOND).unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert_eq!(error.stage(), Stage::Close);
    assert_eq!(hosts.fabric.now() - began, 2 * SECOND);
    // This side has stopped, whatever the peer does.
    assert!(near.receive().unwrap().is_none());
    let error = near.send(b"late").unwrap_err();
    assert!(matches!(error.cause(), Cause::Stopped), "{error}");
    assert!(hosts.fabric.now() - began <= 5 * SECOND);
}

#[test]
fn removing_a_device_ends_waits_of_both_sides() {
    let hosts = Hosts::roce();
    let (near, far) = hosts.connect();
    thread::scope(|scope| {
        let receiving = scope.spawn(|| far.receive());
        let closed = scope.spawn(|| far.closed(None));
        hosts.server.remove_device("rxe0");
        let error = receiving.join().unwrap().unwrap_err();
        assert_eq!(error.stage(), Stage::Receive);
        let reason = closed.join().unwrap().unwrap();
        assert_eq!(reason.kind(), EventKind::DeviceRemoval);
    });
    far.send(b"to nobody").unwrap_err();
    // The peer's requests are not acknowledged any more.
    near.send(b"to nobody").unwrap();
    near.flush().unwrap_err();
    drop((near, far));
}

#[test]
fn a_dropped_connection_ends_the_peers() {
    for hosts in Hosts::each() {
        let (near, far) = hosts.connect();
        drop(near);
        assert!(far.receive().unwrap().is_none());
        assert!(far.closed(SECOND).unwrap().is_orderly());
        drop(far);
        hosts.assert_clean();
    }
}

#[test]
fn a_group_stops_connections_of_before_and_after() {
    for hosts in Hosts::each() {
        let group = StopGroup::new();
        let (_near, before) = hosts.connect();
        group.add(before.stop_handle());
        thread::scope(|scope| {
            let receiving = scope.spawn(|| before.receive());
            group.stop();
            assert!(receiving.join().unwrap().unwrap().is_none());
        });
        let (_near, after) = hosts.connect();
        group.add(after.stop_handle());
        assert!(after.receive().unwrap().is_none());
    }
}

/// The kernel does not disconnect if it finds that the peer's address has moved
/// (`cma_netevent_work_handler`).
#[test]
fn a_peer_that_has_become_unreachable_ends_what_is_in_flight() {
    let mut hosts = Hosts::roce();
    let (instead_of, event) = (EventNumber::DISCONNECTED, EventNumber::UNREACHABLE);
    let channel = address_change::channel(&hosts.client, instead_of, event);
    let node = Node::options().channel(channel);
    hosts.client_node = node
        .device_source(Arc::new(hosts.client.clone()))
        .open()
        .unwrap();
    let (near, far) = hosts.connect_with(few(), few());
    near.set_deadline(SECOND);
    while near.send(&[7; 200]).is_ok() {}
    near.set_deadline(None);
    drop(far);
    let error = near.flush().unwrap_err();
    let Cause::Closed(reason) = error.cause() else {
        panic!("{error:?}");
    };
    assert_eq!(reason.kind(), EventKind::Unreachable);
    drop(near);
    hosts.assert_clean();
}
