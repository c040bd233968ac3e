//! Senders that are faster than the peer.

use std::thread;

use rdmacm::core::ConnParam;
use rdmacm::verbs::WcStatus;
use rdmacm::{CLOSE_DEADLINE, Cause, Message, MessageOptions, Stage, TrySent};

use super::{Hosts, SECOND};

const RECEIVES: u8 = 4;
const SENDS: u8 = 2;

pub(super) fn few() -> MessageOptions {
    let options = MessageOptions::new().receives(RECEIVES.into());
    options.sends(SENDS.into())
}

#[test]
fn messages_that_are_kept_hold_up_the_sender() {
    let hosts = Hosts::roce();
    let (near, far) = hosts.connect_with(few(), few());
    let mut sent = 0;
    near.set_deadline(SECOND);
    let error = loop {
        match near.send(&[sent; 200]) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error.cause(), Cause::Deadline), "{error}");
    // What the peer has room for, and what is in flight.
    assert_eq!(sent, RECEIVES + SENDS);
    let kept: Vec<Message> = (0..RECEIVES)
        .map(|_| far.receive().unwrap().unwrap())
        .collect();
    far.set_deadline(SECOND);
    let error = far.receive().unwrap_err();
    assert!(matches!(error.cause(), Cause::Deadline), "{error}");
    assert_eq!(near.try_send(b"more").unwrap(), TrySent::Full);
    drop(kept);
    for number in RECEIVES..sent {
        assert_eq!(far.receive().unwrap().unwrap()[..], [number; 200]);
    }
    near.flush().unwrap();
    near.send(b"more").unwrap();
    assert_eq!(far.receive().unwrap().unwrap()[..], *b"more");
}

#[test]
fn a_limit_of_retries_fails_the_sender() {
    let hosts = Hosts::roce();
    let (near, far) = thread::scope(|scope| {
        let accepting = scope.spawn(|| {
            let incoming = hosts.listener.accept(None).unwrap();
            // It is the peer that retries so often.
            let incoming = incoming.param(ConnParam::new().rnr_retry_count(2));
            incoming.accept_messages(few()).unwrap()
        });
        let near = hosts.connector().connect_messages(few()).unwrap();
        (near, accepting.join().unwrap())
    });
    // The peer's program has room for so many, and does not receive.
    let sent = (0..=RECEIVES).try_for_each(|_| near.send(b"message"));
    let error = sent.and_then(|()| near.flush()).unwrap_err();
    let Cause::Request(request) = error.cause() else {
        panic!("{error}");
    };
    assert_eq!(request.status, WcStatus::RNR_RETRY_EXC_ERR);
    for _ in 0..RECEIVES {
        assert_eq!(far.receive().unwrap().unwrap()[..], *b"message");
    }
    drop((near, far));
    hosts.assert_clean();
}

#[test]
fn stopping_wakes_a_sender_that_waits_for_room() {
    let hosts = Hosts::roce();
    let (near, far) = hosts.connect_with(few(), few());
    let stop = near.stop_handle();
    thread::scope(|scope| {
        let sending = scope.spawn(|| {
            loop {
                if let Err(error) = near.send(b"message") {
                    break error;
                }
            }
        });
        while far.try_receive().unwrap().is_none() {
            thread::yield_now();
        }
        stop.stop();
        let error = sending.join().unwrap();
        assert!(error.is_stopped(), "{error}");
        assert_eq!(error.stage(), Stage::Send);
    });
}

#[test]
fn a_peer_that_disconnects_ends_a_send_that_waits_for_room() {
    for hosts in Hosts::each() {
        let (near, far) = hosts.connect_with(few(), few());
        thread::scope(|scope| {
            let sending = scope.spawn(|| {
                loop {
                    if let Err(error) = near.send(b"message") {
                        break error;
                    }
                }
            });
            drop(far.receive().unwrap());
            far.close(CLOSE_DEADLINE).unwrap();
            let error = sending.join().unwrap();
            assert!(matches!(error.cause(), Cause::Closed(_)), "{error}");
            assert!(near.closed(SECOND).is_ok());
        });
        drop((near, far));
        hosts.assert_clean();
    }
}

#[test]
fn both_sides_send_at_once() {
    let hosts = Hosts::roce();
    let (near, far) = hosts.connect_with(few(), few());
    thread::scope(|scope| {
        for side in [&near, &far] {
            scope.spawn(move || {
                for number in 0..100_u8 {
                    side.send(&[number; 100]).unwrap();
                }
            });
            scope.spawn(move || {
                for number in 0..100_u8 {
                    assert_eq!(side.receive().unwrap().unwrap()[..], [number; 100]);
                }
            });
        }
    });
    drop((near, far));
    hosts.assert_clean();
}
