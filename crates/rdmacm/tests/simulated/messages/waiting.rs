//! Several threads that wait on one connection.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use rdmacm::core::Transport;
use rdmacm::{Cause, MessageOptions, Stage};

use super::{Hosts, SECOND, node};
use crate::queue_pair::QueuePairs;

#[test]
fn each_message_is_received_once() {
    let hosts = Hosts::roce();
    let (near, far) = hosts.connect();
    let mut received = thread::scope(|scope| {
        let receiving = [(); 4].map(|()| {
            scope.spawn(|| {
                let mut received = Vec::new();
                while let Some(message) = far.receive().unwrap() {
                    received.push(message[0]);
                }
                received
            })
        });
        for number in 0..200_u8 {
            near.send(&[number]).unwrap();
        }
        near.close(60 * SECOND).unwrap();
        receiving
            .map(|receiving| receiving.join().unwrap())
            .concat()
    });
    received.sort_unstable();
    assert!(received.into_iter().eq(0..200));
}

#[test]
fn a_wait_ends_at_its_deadline_while_others_go_on() {
    for hosts in Hosts::each() {
        let (near, far) = hosts.connect();
        let (other_near, other_far) = hosts.connect();
        other_far.set_deadline(5 * SECOND);
        thread::scope(|scope| {
            let long = scope.spawn(|| far.receive().unwrap().unwrap().to_vec());
            // The clock moves once both sleep: from the second wait on the other thread leads.
            for _ in 0..3 {
                let error = other_far.receive().unwrap_err();
                assert!(matches!(error.cause(), Cause::Deadline), "{error}");
                assert_eq!(error.elapsed(), 5 * SECOND);
            }
            near.send(b"at last").unwrap();
            assert_eq!(long.join().unwrap(), b"at last");
        });
        drop(other_near);
    }
}

/// By the clock of the machine, unlike its deadline.
#[test]
fn a_caller_polls_no_longer_than_its_deadline() {
    let long = Duration::from_secs(3_600);
    for hosts in Hosts::each() {
        let polling = MessageOptions::new().busy_poll(long);
        let (_near, far) = hosts.connect_with(MessageOptions::new(), polling);
        for deadline in [Duration::ZERO, Duration::from_millis(5)] {
            far.set_deadline(deadline);
            let error = far.receive().unwrap_err();
            assert!(matches!(error.cause(), Cause::Deadline), "{error}");
        }
    }
}

#[test]
fn a_connection_whose_context_was_closed_reports_that() {
    // On iWARP the connection ends with the queue pair.
    let hosts = Hosts::roce();
    let (near, _far) = hosts.connect();
    near.protection_domain().context().close();
    // However short the waits are.
    let mut errors = (0..20).map(|_| near.closed(SECOND).unwrap_err());
    let error = errors.find(|error| !matches!(error.cause(), Cause::Deadline));
    let error = error.unwrap();
    assert_eq!(error.stage(), Stage::Closed);
    assert!(matches!(error.cause(), Cause::Device { .. }), "{error}");
    assert!(near.closed(None).is_err());
}

#[test]
fn clients_of_several_hosts_have_the_same_queue_pair_numbers() {
    for hosts in Hosts::each() {
        let other = hosts.fabric.find_host("other").unwrap();
        thread::scope(|scope| {
            let accepting = [(); 2].map(|()| {
                scope.spawn(|| {
                    let incoming = hosts.listener.accept(None).unwrap();
                    incoming.accept().unwrap()
                })
            });
            let near = hosts.connector().connect().unwrap();
            let other = hosts
                .connector()
                .with_node(&node(&other))
                .connect()
                .unwrap();
            assert_eq!(near.queue_pair().number(), other.queue_pair().number());
            for connection in [&near, &other] {
                connection.send(b"from each").unwrap();
                connection.flush().unwrap();
            }
            for accepting in accepting {
                let far = accepting.join().unwrap();
                assert_eq!(far.receive().unwrap().unwrap()[..], *b"from each");
            }
        });
    }
}

#[test]
fn many_connections_share_two_nodes() {
    for hosts in Hosts::each() {
        let pairs: Vec<_> = (0..10).map(|_| hosts.connect()).collect();
        thread::scope(|scope| {
            for (number, (near, far)) in (0_u8..).zip(&pairs) {
                scope.spawn(move || {
                    while let Some(message) = far.receive().unwrap() {
                        far.send(&message).unwrap();
                    }
                });
                scope.spawn(move || {
                    for _ in 0..20 {
                        near.send(&[number; 70]).unwrap();
                        assert_eq!(near.receive().unwrap().unwrap()[..], [number; 70]);
                    }
                    near.close(60 * SECOND).unwrap();
                });
            }
        });
        drop(pairs);
        hosts.assert_clean();
    }
}

/// The thread reads an event of another connection of its node, whose queue pair panics.
#[test]
fn a_thread_that_panics_takes_no_message_from_others() {
    let hosts = Hosts::roce();
    let options = MessageOptions::new().busy_poll(Duration::ZERO);
    let (near, far) = hosts.connect_with(options.clone(), options);
    let [pairs, peers] = [(); 2].map(|()| QueuePairs::new(Transport::RoCE));
    let other = thread::scope(|scope| {
        let accepting = scope.spawn(|| {
            let incoming = hosts.listener.accept(None).unwrap();
            incoming.accept_with(&peers).unwrap()
        });
        let other = hosts.connector().connect_with(&pairs).unwrap();
        drop(accepting.join().unwrap());
        other
    });
    pairs.panic_next();
    catch_unwind(AssertUnwindSafe(|| near.receive())).unwrap_err();
    // A thread that is not woken looks at its deadline.
    near.set_deadline(60 * SECOND);
    let began = hosts.fabric.now();
    thread::scope(|scope| {
        scope.spawn(|| {
            while let Some(message) = far.receive().unwrap() {
                far.send(&message).unwrap();
            }
        });
        for number in 0..50_u8 {
            near.send(&[number]).unwrap();
            assert_eq!(*near.receive().unwrap().unwrap(), [number]);
        }
        let elapsed = hosts.fabric.now() - began;
        near.close(60 * SECOND).unwrap();
        assert!(elapsed < 60 * SECOND, "{elapsed:?}");
    });
    drop(other);
}
