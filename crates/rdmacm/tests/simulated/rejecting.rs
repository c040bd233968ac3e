//! Requests that are rejected.

use std::thread;

use rdmacm::core::RejectReason;
use rdmacm::{Listener, Stage};

use crate::hosts::{Hosts, SECOND, Server, assert_text, node};

#[test]
fn a_rejection_has_private_data() {
    for hosts in Hosts::each() {
        let listener = hosts.listen(&node(&hosts.server));
        let client = node(&hosts.client);
        let error = thread::scope(|scope| {
            scope.spawn(|| listener.accept(60 * SECOND).unwrap().reject(b"no").unwrap());
            let connector = hosts.connector(&client);
            connector.connect_with(&hosts.client_pairs).unwrap_err()
        });
        assert_eq!(error.stage(), Stage::Connect);
        assert!(error.is_rejected() && !error.is_retryable(), "{error}");
        assert!(error.private_data().starts_with(b"no"), "{error:?}");
        let reason = (!hosts.is_iwarp()).then_some(RejectReason::CONSUMER_DEFINED);
        assert_eq!(error.reject_reason(), reason);
        assert_text(
            &error,
            &format!("connect to {} via {}: ", hosts.address(), hosts.device()),
        );
        hosts.assert_client_is_clean();
        drop(listener);
        hosts.assert_server_is_clean();
    }
}

#[test]
fn a_dropped_request_is_rejected() {
    for hosts in Hosts::each() {
        let listener = hosts.listen(&node(&hosts.server));
        let client = node(&hosts.client);
        let error = thread::scope(|scope| {
            scope.spawn(|| drop(listener.accept(60 * SECOND).unwrap()));
            let connector = hosts.connector(&client);
            connector.connect_with(&hosts.client_pairs).unwrap_err()
        });
        assert!(error.is_rejected(), "{error}");
        assert!(error.private_data().is_empty(), "{error:?}");
        hosts.assert_client_is_clean();
    }
}

#[test]
fn a_queue_of_no_requests_rejects_all() {
    for hosts in Hosts::each() {
        let listener = Listener::options().with_node(&node(&hosts.server)).queue(0);
        let listener = listener.bind(hosts.address()).unwrap();
        let client = node(&hosts.client);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| listener.accept(None).unwrap_err());
            let connector = hosts.connector(&client);
            let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
            assert!(error.is_rejected() && !error.is_retryable(), "{error}");
            listener.stop();
            assert!(waiting.join().unwrap().is_stopped());
        });
        hosts.assert_client_is_clean();
    }
}

#[test]
fn a_client_that_gives_up_rejects_the_server() {
    let hosts = Hosts::roce();
    let listener = hosts.listen(&node(&hosts.server));
    let client = node(&hosts.client);
    let incoming = thread::scope(|scope| {
        let incoming = scope.spawn(|| listener.accept(60 * SECOND).unwrap());
        let connector = hosts.connector(&client).deadline(SECOND);
        connector.connect_with(&hosts.client_pairs).unwrap_err();
        incoming.join().unwrap()
    });
    let error = incoming.accept_with(&hosts.server_pairs).unwrap_err();
    assert_eq!(error.stage(), Stage::Accept);
    hosts.assert_client_is_clean();
    drop(listener);
    hosts.assert_server_is_clean();
    // Both still work.
    let server = Server::start(&hosts);
    let connected = hosts.connector(&client).connect_with(&hosts.client_pairs);
    connected.unwrap();
    server.stop();
}
