//! Network interfaces that fail over to another device while a connection is being established.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use rdmacm::core::ucma::{Call, UcmaFile};
use rdmacm::core::{ChannelOptions, CommandNumber, EventChannel, EventKind};
use rdmacm::{Cause, Error, Node, Stage};
use rdmacm_abi::{EventNumber, EventResponse};
use rdmacm_sim::Host;
use zerocopy::FromBytes as _;

use crate::hosts::{Hosts, node};

/// A host's file that reports one event in place of another.
#[derive(Debug)]
struct ReplacedEvents {
    kernel: Arc<dyn UcmaFile>,
    instead_of: EventNumber,
    event: EventNumber,
}

impl UcmaFile for ReplacedEvents {
    fn execute(&self, call: &mut Call<'_>) -> io::Result<()> {
        self.kernel.execute(call)?;
        if call.number() == CommandNumber::GET_EVENT {
            let (event, _) = EventResponse::mut_from_prefix(call.response()).unwrap();
            if event.event == self.instead_of {
                event.event = self.event;
            }
        }
        Ok(())
    }

    fn wait(&self, until: Option<Instant>, other: Option<BorrowedFd<'_>>) -> io::Result<bool> {
        self.kernel.wait(until, other)
    }

    fn wake(&self) {
        self.kernel.wake();
    }

    fn take_wake(&self) -> bool {
        self.kernel.take_wake()
    }

    fn notify(&self) {
        self.kernel.notify();
    }

    fn take_notification(&self) -> bool {
        self.kernel.take_notification()
    }

    fn now(&self) -> Instant {
        self.kernel.now()
    }

    fn next_due(&self) -> Option<Instant> {
        self.kernel.next_due()
    }

    fn advance_to(&self, time: Instant) {
        self.kernel.advance_to(time);
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.kernel.readiness()
    }

    fn ucma_fd(&self) -> Option<BorrowedFd<'_>> {
        self.kernel.ucma_fd()
    }
}

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
            assert_change(error, Stage::Establish);
        });
        drop(listener);
        hosts.assert_server_is_clean();
    }
}
