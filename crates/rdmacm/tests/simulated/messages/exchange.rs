//! Messages in both directions.

use std::io::IoSlice;
use std::thread;

use rdmacm::core::ConnParam;
use rdmacm::verbs::WcStatus;
use rdmacm::{CLOSE_DEADLINE, Cause, Connection, MessageOptions};

use super::{ALL, Hosts, SECOND};

#[test]
fn messages_are_exchanged() {
    for hosts in Hosts::each() {
        let (near, far) = hosts.connect();
        let echo = thread::spawn(move || {
            while let Some(message) = far.receive().unwrap() {
                far.send(&message).unwrap();
            }
        });
        for number in 0..100_u8 {
            near.send(&[number; 17]).unwrap();
            assert_eq!(*near.receive().unwrap().unwrap(), [number; 17]);
        }
        near.close(CLOSE_DEADLINE).unwrap();
        echo.join().unwrap();
    }
}

#[test]
fn messages_arrive_late_but_all() {
    for hosts in Hosts::each() {
        let (near, far) = hosts.connect();
        hosts.fabric.set_delay(SECOND);
        let begin = hosts.fabric.now();
        let sender = thread::spawn(move || {
            near.send(b"late").unwrap();
            near.flush().unwrap();
            near
        });
        assert_eq!(*far.receive().unwrap().unwrap(), *b"late");
        assert!(hosts.fabric.now().duration_since(begin) >= SECOND);
        drop(sender.join().unwrap());
    }
}

/// The flush of a message that is lost fails.
fn fails_what_is_sent(send: impl FnOnce(&Connection)) {
    let hosts = Hosts::roce();
    // Seven retries have no limit.
    let connector = hosts.connector().param(ConnParam::new().retry_count(6));
    let (near, _far) = thread::scope(|scope| {
        let accepting = scope.spawn(|| {
            let incoming = hosts.listener.accept(None).unwrap();
            incoming.accept().unwrap()
        });
        (connector.connect().unwrap(), accepting.join().unwrap())
    });
    hosts.server.set_responding(false);
    let begin = hosts.fabric.now();
    send(&near);
    let error = near.flush().unwrap_err();
    let Cause::Request(request) = error.cause() else {
        panic!("{error}");
    };
    assert_eq!(request.status, WcStatus::RETRY_EXC_ERR);
    assert!(hosts.fabric.now() > begin);
}

#[test]
fn a_peer_that_does_not_respond_fails_what_is_sent() {
    fails_what_is_sent(|near| near.send(b"lost").unwrap());
    // Nobody else would learn of it.
    fails_what_is_sent(|near| {
        let buffer = near.allocate(4).unwrap();
        drop(near.start_send(buffer).unwrap());
    });
    // Whoever has the transfer has not looked at it.
    fails_what_is_sent(|near| {
        let buffer = near.allocate(4).unwrap();
        std::mem::forget(near.start_send(buffer).unwrap());
    });
}

/// Nobody waits on its node.
#[test]
fn a_sender_that_never_waits_learns_that_the_connection_has_closed() {
    for hosts in Hosts::each() {
        let (near, far) = hosts.connect();
        drop(far);
        let sent = (0..200).try_for_each(|_| {
            let sent = near.try_send(b"anyone?").map(drop);
            hosts.fabric.advance(SECOND);
            sent
        });
        assert!(sent.is_err());
    }
}

#[test]
fn slices_are_one_message() {
    for hosts in Hosts::each() {
        let (near, far) = hosts.connect();
        let long = [7; 100];
        near.send_vectored(&[IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(&long)])
            .unwrap();
        let message = far.receive().unwrap().unwrap();
        assert_eq!(message[..2], *b"ab");
        assert_eq!(message[2..], long);
        drop(message);
        near.send(b"").unwrap();
        assert!(far.receive().unwrap().unwrap().is_empty());
    }
}

#[test]
fn messages_of_every_length_arrive() {
    for hosts in Hosts::each() {
        let (near, far) = hosts.connect();
        // What is posted inline, copied, and as long as it may be.
        for length in [0, 1, 63, 64, 65, 1023, 4095, 4096] {
            let message: Vec<u8> = (0..length).map(|at: u32| at.to_le_bytes()[0]).collect();
            near.send(&message).unwrap();
            let received = far.receive().unwrap().unwrap();
            assert_eq!(received[..], message[..]);
            assert_eq!(received.immediate(), None);
        }
    }
}

#[test]
fn a_connection_moves_to_another_node_with_what_was_not_received() {
    for hosts in Hosts::each() {
        let (near, mut far) = hosts.connect();
        near.send(b"before").unwrap();
        near.flush().unwrap();
        let node = super::node(&hosts.server);
        far.migrate(&node).unwrap();
        near.send(b"after").unwrap();
        for message in [&b"before"[..], b"after"] {
            assert_eq!(far.receive().unwrap().unwrap()[..], *message);
        }
        thread::scope(|scope| {
            let receiving = scope.spawn(|| far.receive().unwrap());
            near.close(CLOSE_DEADLINE).unwrap();
            assert!(receiving.join().unwrap().is_none());
        });
        drop((near, far));
        hosts.assert_clean();
    }
}

#[test]
fn a_message_that_is_too_long_is_not_sent() {
    for hosts in Hosts::each() {
        let options = MessageOptions::new().size(100);
        let (near, far) = hosts.connect_with(options.clone(), options);
        let error = near.send(&[1; 101]).unwrap_err();
        assert!(
            matches!(error.cause(), Cause::MessageTooLong(101)),
            "{error}"
        );
        near.send(&[2; 100]).unwrap();
        assert_eq!(far.receive().unwrap().unwrap()[..], [2; 100]);
    }
}

#[test]
fn a_message_that_the_peer_has_no_room_for_closes_the_connection() {
    let hosts = Hosts::roce();
    let (near, far) = hosts.connect_with(MessageOptions::new(), MessageOptions::new().size(10));
    near.send(&[1; 11]).unwrap();
    let error = near.flush().unwrap_err();
    let Cause::Request(request) = error.cause() else {
        panic!("{error}");
    };
    assert_eq!(request.status, WcStatus::REM_OP_ERR);
    let error = far.receive().unwrap_err();
    assert!(
        matches!(error.cause(), Cause::Request(_) | Cause::Closed(_)),
        "{error}"
    );
    drop((near, far));
    hosts.assert_clean();
}

#[test]
fn a_slow_receiver_is_waited_for() {
    let hosts = Hosts::roce();
    let options = MessageOptions::new().receives(2).sends(2);
    let (near, far) = hosts.connect_with(options.clone(), options);
    thread::scope(|scope| {
        let sending = scope.spawn(|| {
            for number in 0..50_u8 {
                near.send(&[number]).unwrap();
            }
            near.flush().unwrap();
        });
        for number in 0..50_u8 {
            assert_eq!(far.receive().unwrap().unwrap()[..], [number]);
        }
        sending.join().unwrap();
    });
}

#[test]
fn nothing_is_sent_without_room() {
    let hosts = Hosts::roce();
    let options = MessageOptions::new().sends(3);
    let (near, _far) = hosts.connect_with(options, MessageOptions::new());
    hosts.fabric.set_delay(SECOND);
    let sent = [(); 5].map(|()| near.try_send(b"now").unwrap().is_sent());
    assert_eq!(sent, [true, true, true, false, false]);
    near.set_deadline(SECOND / 2);
    let error = near.send(b"in time").unwrap_err();
    assert!(matches!(error.cause(), Cause::Deadline), "{error}");
    near.set_deadline(60 * SECOND);
    near.flush().unwrap();
    assert!(near.try_send(b"now").unwrap().is_sent());
}

#[test]
fn a_flush_does_not_wait_for_later_messages() {
    for hosts in Hosts::each() {
        let (near, far) = hosts.connect();
        hosts.fabric.set_delay(SECOND);
        thread::scope(|scope| {
            let (near, far) = (&near, &far);
            scope.spawn(move || while far.receive().unwrap().is_some() {});
            // Something is in flight all the time.
            let sending = scope.spawn(move || while near.send(b"more").is_ok() {});
            let began = hosts.fabric.now();
            near.flush().unwrap();
            let elapsed = hosts.fabric.now() - began;
            assert!(elapsed <= 4 * SECOND, "{elapsed:?}");
            near.close(CLOSE_DEADLINE).unwrap();
            sending.join().unwrap();
        });
    }
}

#[test]
fn lost_messages_are_sent_again() {
    for seed in 0..8 {
        let hosts = Hosts::roce();
        let _ = hosts.fabric.clone().seed(seed);
        let (near, far) = hosts.connect();
        hosts.fabric.set_loss(20);
        thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..30_u8 {
                    near.send(&[number; 80]).unwrap();
                }
                near.flush().unwrap();
            });
            for number in 0..30_u8 {
                assert_eq!(far.receive().unwrap().unwrap()[..], [number; 80]);
            }
        });
        hosts.fabric.set_loss(0);
        drop((near, far));
        hosts.assert_clean();
    }
}

#[test]
fn halves_send_and_receive_on_their_own() {
    for hosts in Hosts::each() {
        let (near, far) = hosts.connect();
        let (send, receive) = near.into_split();
        thread::scope(|scope| {
            let echo = scope.spawn(|| {
                while let Some(message) = far.receive().unwrap() {
                    far.send(&message).unwrap();
                }
            });
            let receiving = scope.spawn(move || {
                let mut count = 0;
                while receive.receive().unwrap().is_some() {
                    count += 1;
                    if count == 10 {
                        break;
                    }
                }
                receive
            });
            for _ in 0..10 {
                send.send(b"to and fro").unwrap();
            }
            let receive = receiving.join().unwrap();
            let region = far.expose(8, ALL).unwrap();
            send.set_deadline(CLOSE_DEADLINE);
            let [first, second] = [1, 2].map(|byte| {
                let mut buffer = send.allocate(4).unwrap();
                buffer.fill(byte);
                buffer
            });
            let writing = send.start_write(first, region.remote()).unwrap();
            let reading = send.start_read(second, region.remote()).unwrap();
            writing.wait().unwrap();
            assert_eq!(reading.wait().unwrap()[..], [1; 4]);
            let near = send.reunite(receive).unwrap();
            near.close(CLOSE_DEADLINE).unwrap();
            echo.join().unwrap();
        });
    }
}
