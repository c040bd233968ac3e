//! Network interfaces that fail over to another device while a connection is being established.

use std::io;
use std::sync::Arc;
use std::thread;

use rdmacm::core::ucma::UcmaFile;
use rdmacm::core::{ChannelOptions, CommandNumber, EventChannel, EventKind};
use rdmacm::{Cause, Error, Node, Stage};
use rdmacm_abi::{EventNumber, EventResponse};
use rdmacm_sim::Host;
use rdmacm_test_helpers::ucma_file_over;
use zerocopy::FromBytes as _;

use crate::hosts::{Hosts, node};

/// A host's file that reports one event in place of another.
#[derive(Debug)]
struct ReplacedEvents {
    kernel: Arc<dyn UcmaFile>,
    instead_of: EventNumber,
    event: EventNumber,
}

ucma_file_over!(ReplacedEvents, kernel, |this, call| {
    this.kernel.execute(call)?;
    if call.number() == CommandNumber::GET_EVENT {
        let (event, _) = EventResponse::mut_from_prefix(call.response()).unwrap();
        if event.event == this.instead_of {
            event.event = this.event;
        }
    }
    Ok(())
});

/// A channel of a host that reports one event in place of another.
pub(crate) fn channel(host: &Host, instead_of: EventNumber, event: EventNumber) -> ChannelOptions {
    let file = ReplacedEvents {
        kernel: host.open().unwrap(),
        instead_of,
        event,
    };
    let options = EventChannel::options().ucma(Arc::new(file));
    options.devices(Arc::new(host.clone()))
}

/// `ADDR_CHANGE` in place of another event (`cma_netdev_change`).
fn failing_over(host: &Host, instead_of: EventNumber) -> Node {
    let channel = channel(host, instead_of, EventNumber::ADDR_CHANGE);
    Node::options().channel(channel).open().unwrap()
}

#[track_caller]
fn assert_change(error: Error, stage: Stage) {
    assert_eq!(error.stage(), stage, "{error}");
    let Cause::Event(failure) = error.cause() else {
        panic!("{error:?}");
    };
    assert_eq!(failure.kind(), EventKind::AddrChange);
    assert!(error.is_retryable(), "{error}");
    assert!(error.to_string().contains("ADDR_CHANGE: "), "{error}");
    assert_eq!(
        io::Error::from(error).kind(),
        io::ErrorKind::ConnectionReset
    );
}

#[test]
fn while_connecting() {
    for (hosts, reply) in Hosts::each().into_iter().zip([
        EventNumber::CONNECT_RESPONSE,
        // On iWARP.
        EventNumber::ESTABLISHED,
    ]) {
        let stages = [
            (EventNumber::ADDR_RESOLVED, Stage::ResolveAddress),
            (EventNumber::ROUTE_RESOLVED, Stage::ResolveRoute),
            (reply, Stage::Connect),
        ];
        let listener = hosts.listen(&node(&hosts.server));
        for (instead_of, stage) in stages {
            let client = failing_over(&hosts.client, instead_of);
            thread::scope(|scope| {
                if stage == Stage::Connect {
                    scope.spawn(|| {
                        let incoming = listener.accept(None).unwrap();
                        incoming.accept_with(&hosts.server_pairs)
                    });
                }
                let connector = hosts.connector(&client);
                let error = connector.connect_with(&hosts.client_pairs).unwrap_err();
                assert_change(error, stage);
            });
            hosts.assert_client_is_clean();
        }
    }
}

#[test]
fn while_accepting() {
    for hosts in Hosts::each() {
        let server = failing_over(&hosts.server, EventNumber::ESTABLISHED);
        let listener = hosts.listen(&server);
        let client = node(&hosts.client);
        thread::scope(|scope| {
            scope.spawn(|| hosts.connector(&client).connect_with(&hosts.client_pairs));
            let incoming = listener.accept(None).unwrap();
            let error = incoming.accept_with(&hosts.server_pairs).unwrap_err();
            assert_change(error, Stage::Accept);
        });
        drop(listener);
        hosts.assert_server_is_clean();
    }
}
