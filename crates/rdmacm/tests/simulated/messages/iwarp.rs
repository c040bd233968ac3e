//! What is different over iWARP, where TCP has what was sent.

use std::thread;
use std::time::Duration;

use super::{Hosts, SECOND};
use rdmacm::MessageOptions;

#[test]
fn a_message_without_room_at_the_peer_ends_the_connection() {
    let hosts = Hosts::iwarp();
    let options = MessageOptions::new().receives(2).sends(8);
    let (near, far) = hosts.connect_with(options.clone(), options);
    for number in 0..2_u8 {
        near.send(&[number]).unwrap();
    }
    // It is complete here before the peer refuses it.
    near.send(b"one too many").unwrap();
    assert!(near.closed(SECOND).is_ok());
    for number in 0..2_u8 {
        assert_eq!(far.receive().unwrap().unwrap()[..], [number]);
    }
    assert!(far.closed(SECOND).is_ok());
    drop((near, far));
    hosts.assert_clean();
}

#[test]
fn messages_to_a_peer_that_does_not_respond_are_complete() {
    let hosts = Hosts::iwarp();
    let (near, _far) = hosts.connect();
    hosts.server.set_responding(false);
    for _ in 0..100 {
        near.send(b"lost").unwrap();
    }
    near.flush().unwrap();
}

#[test]
fn no_message_is_lost_on_a_lossy_network() {
    let hosts = Hosts::iwarp();
    let (near, far) = hosts.connect();
    hosts.fabric.set_loss(50);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..100_u8 {
                near.send(&[number]).unwrap();
                assert_eq!(near.receive().unwrap().unwrap()[..], [number]);
            }
        });
        for _ in 0..100 {
            let message = far.receive().unwrap().unwrap();
            far.send(&message).unwrap();
        }
    });
}

#[test]
fn a_new_connection_follows_an_ended_one() {
    let hosts = Hosts::iwarp();
    let (near, far) = hosts.connect();
    drop(far);
    assert!(near.closed(SECOND).is_ok());
    near.send(b"late").unwrap_err();
    drop(near);
    hosts.assert_clean();
    // A new queue pair can.
    let (near, far) = hosts.connect();
    near.send(b"again").unwrap();
    assert_eq!(far.receive().unwrap().unwrap()[..], *b"again");
}

#[test]
fn messages_arrive_once_the_peer_responds_again() {
    let hosts = Hosts::iwarp();
    let (near, far) = hosts.connect();
    hosts.server.set_responding(false);
    for number in 0..3_u8 {
        near.send(&[number]).unwrap();
    }
    hosts.fabric.advance(60 * SECOND);
    assert!(far.try_receive().unwrap().is_none());
    hosts.server.set_responding(true);
    far.set_deadline(SECOND);
    for number in 0..3_u8 {
        assert_eq!(far.receive().unwrap().unwrap()[..], [number]);
    }
    far.send(b"reply").unwrap();
    assert_eq!(near.receive().unwrap().unwrap()[..], *b"reply");
}

#[test]
fn no_message_overtakes_another() {
    let hosts = Hosts::iwarp();
    let (near, far) = hosts.connect();
    hosts.server.set_delay(2 * SECOND);
    near.send(b"slow").unwrap();
    hosts.server.set_delay(Duration::ZERO);
    near.send(b"fast").unwrap();
    far.set_deadline(10 * SECOND);
    for expected in [b"slow", b"fast"] {
        assert_eq!(far.receive().unwrap().unwrap()[..], *expected);
    }
}
