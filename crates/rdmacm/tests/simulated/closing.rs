//! The end of a connection, as both sides see it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use rdmacm::core::{Deadline, EventKind};
use rdmacm::{CLOSE_DEADLINE, Stage};
use rdmacm_test_helpers::child_ends;

use crate::hosts::{Hosts, SECOND, node};

#[test]
fn a_peer_that_closes_is_noticed() {
    for hosts in Hosts::each() {
        let listener = hosts.listen(&node(&hosts.server));
        let client = node(&hosts.client);
        let [connection, accepted] = hosts.connect(&client, &listener);
        thread::scope(|scope| {
            let waiting = [(); 2].map(|()| scope.spawn(|| accepted.closed(None).unwrap()));
            connection.close(CLOSE_DEADLINE).unwrap();
            for reason in waiting.map(|waiting| waiting.join().unwrap()) {
                assert!(reason.is_orderly(), "{reason}");
            }
        });
        // It stays known, to both.
        assert!(accepted.closed(SECOND).unwrap().is_orderly());
        accepted.close(SECOND).unwrap();
        drop((connection, accepted, listener));
        hosts.assert_client_is_clean();
        hosts.assert_server_is_clean();
    }
}

#[test]
fn a_peer_that_drops_its_side_is_noticed() {
    for hosts in Hosts::each() {
        let listener = hosts.listen(&node(&hosts.server));
        let client = node(&hosts.client);
        let [connection, accepted] = hosts.connect(&client, &listener);
        drop(connection);
        let reason = accepted.closed(60 * SECOND).unwrap();
        assert_eq!(reason.kind(), EventKind::Disconnected);
        drop((accepted, listener));
        hosts.assert_client_is_clean();
        hosts.assert_server_is_clean();
    }
}

/// The thread that reads the event moves the queue pair, and panics.
#[test]
fn a_queue_pair_that_panics_loses_no_event() {
    let hosts = Hosts::roce();
    let listener = hosts.listen(&node(&hosts.server));
    let client = node(&hosts.client);
    let [connection, accepted] = hosts.connect(&client, &listener);
    hosts.server_pairs.panic_next();
    drop(connection);
    let closed = || accepted.closed(60 * SECOND);
    catch_unwind(AssertUnwindSafe(closed)).unwrap_err();
    assert_eq!(closed().unwrap().kind(), EventKind::Disconnected);
}

#[test]
fn closing_wakes_other_waiters_of_this_side() {
    for hosts in Hosts::each() {
        let listener = hosts.listen(&node(&hosts.server));
        let client = node(&hosts.client);
        let [connection, accepted] = hosts.connect(&client, &listener);
        thread::scope(|scope| {
            scope.spawn(|| accepted.closed(None).unwrap());
            let waiting = scope.spawn(|| connection.closed(None).unwrap());
            connection.close(CLOSE_DEADLINE).unwrap();
            assert!(waiting.join().unwrap().is_orderly());
        });
    }
}

#[test]
fn both_sides_may_close_at_once() {
    for hosts in Hosts::each() {
        let listener = hosts.listen(&node(&hosts.server));
        let client = node(&hosts.client);
        let sides = hosts.connect(&client, &listener);
        thread::scope(|scope| {
            let closing = sides
                .each_ref()
                .map(|side| scope.spawn(|| side.close(CLOSE_DEADLINE)));
            for closing in closing {
                closing.join().unwrap().unwrap();
            }
        });
        drop((sides, listener));
        hosts.assert_client_is_clean();
        hosts.assert_server_is_clean();
    }
}

#[test]
fn removing_a_device_closes_both_sides() {
    for hosts in Hosts::each() {
        let listener = hosts.listen(&node(&hosts.server));
        let client = node(&hosts.client);
        let [connection, accepted] = hosts.connect(&client, &listener);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| accepted.closed(None).unwrap());
            hosts.server.remove_device(hosts.device());
            let reason = waiting.join().unwrap();
            assert_eq!(reason.kind(), EventKind::DeviceRemoval);
            assert!(!reason.is_orderly());
        });
        let reason = connection.closed(200 * SECOND).unwrap();
        assert_eq!(reason.kind(), EventKind::Disconnected);
        drop((connection, accepted, listener));
        hosts.assert_client_is_clean();
        hosts.assert_server_is_clean();
    }
}

#[test]
fn a_lost_peer_fails_the_close_when_the_kernel_gives_up() {
    let hosts = Hosts::roce();
    let listener = hosts.listen(&node(&hosts.server));
    let client = node(&hosts.client);
    let [connection, _accepted] = hosts.connect(&client, &listener);
    hosts.server.set_responding(false);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| connection.closed(None).unwrap());
        let error = connection.close(Deadline::Never).unwrap_err();
        assert_eq!(error.stage(), Stage::Close);
        assert_eq!(error.raw_os_error(), Some(libc::ETIMEDOUT), "{error}");
        let reason = waiting.join().unwrap();
        assert!(
            !reason.is_orderly() && reason.failure().is_some(),
            "{reason}"
        );
    });
    drop(connection);
    hosts.assert_client_is_clean();
}

#[test]
fn a_lost_peer_of_iwarp_is_not_waited_for() {
    let hosts = Hosts::iwarp();
    let listener = hosts.listen(&node(&hosts.server));
    let client = node(&hosts.client);
    let [connection, _accepted] = hosts.connect(&client, &listener);
    hosts.server.set_responding(false);
    connection.close(Deadline::Never).unwrap();
    drop(connection);
    hosts.assert_client_is_clean();
}

#[test]
fn nobody_replies_for_a_node_that_is_not_waited_on() {
    let hosts = Hosts::roce();
    let listener = hosts.listen(&node(&hosts.server));
    let client = node(&hosts.client);
    let [connection, _accepted] = hosts.connect(&client, &listener);
    let error = connection.close(CLOSE_DEADLINE).unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert_eq!(error.elapsed(), CLOSE_DEADLINE);
}

#[test]
fn a_driven_node_replies_to_disconnects() {
    for hosts in Hosts::each() {
        let server = node(&hosts.server);
        let listener = hosts.listen(&server);
        let client = node(&hosts.client);
        let [connection, accepted] = hosts.connect(&client, &listener);
        // It ends when reading events fails.
        thread::scope(|scope| {
            let driver = scope.spawn(|| server.drive().unwrap_err());
            connection.close(CLOSE_DEADLINE).unwrap();
            let command = rdmacm::core::CommandNumber::GET_EVENT;
            hosts.server.fail_next(command, 1, libc::ENOMEM);
            drop(connection);
            let connector = hosts.connector(&client).deadline(SECOND);
            connector.connect_with(&hosts.client_pairs).unwrap_err();
            assert_eq!(driver.join().unwrap().raw_os_error(), Some(libc::ENOMEM));
        });
        assert!(accepted.closed(SECOND).unwrap().is_orderly());
    }
}

/// What no queue pair of a driver refuses in a child: moving it would end the parent's connection.
#[test]
fn a_forked_child_does_not_move_the_queue_pair_of_its_parent() {
    let hosts = Hosts::roce();
    let listener = hosts.listen(&node(&hosts.server));
    let client = node(&hosts.client);
    let [connection, _accepted] = hosts.connect(&client, &listener);
    assert!(child_ends(|| {
        hosts.client_pairs.panic_next();
        connection.close(CLOSE_DEADLINE).unwrap_err();
    }));
    let mut inherited = Some(connection);
    assert!(child_ends(|| {
        hosts.client_pairs.panic_next();
        drop(inherited.take());
    }));
}
