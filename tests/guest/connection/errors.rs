//! Queue pairs that fail to change their state.

use std::io;
use std::sync::Mutex;

use rdmacm_core::{
    ConnParam, DepthLimits, Error, EventKind, QpAttr, QpAttrMask, QpState, QueuePair, Transport,
};
use rdmacm_tests::{PATIENCE, Pair, Site, Soft};
use rdmacm_tests_macros::case;
use rdmacm_verbs::QueuePair as Real;

/// A real queue pair that fails to move to one state and records the others.
#[derive(Debug)]
struct Stubborn<'a> {
    real: &'a Real,
    refuses: QpState,
    went: Mutex<Vec<QpState>>,
}

impl<'a> Stubborn<'a> {
    fn new(real: &'a Real, refuses: QpState) -> Self {
        Self {
            real,
            refuses,
            went: Mutex::default(),
        }
    }

    fn last(&self) -> Option<QpState> {
        self.went.lock().unwrap().last().copied()
    }
}

impl QueuePair for Stubborn<'_> {
    fn number(&self) -> u32 {
        self.real.number()
    }

    fn transport(&self) -> Transport {
        self.real.transport()
    }

    fn depth_limits(&self) -> DepthLimits {
        self.real.depth_limits()
    }

    fn modify(&self, attr: &QpAttr, mask: QpAttrMask) -> io::Result<()> {
        if attr.qp_state == self.refuses {
            return Err(no());
        }
        QueuePair::modify(self.real, attr, mask)?;
        self.went.lock().unwrap().push(attr.qp_state);
        Ok(())
    }
}

fn no() -> io::Error {
    io::Error::other("the firmware refused")
}

fn assert_refused(outcome: Result<(), Error>, state: QpState) {
    let error = no().into();
    assert_eq!(outcome.unwrap_err(), Error::QueuePair { state, error });
}

/// One side's command fails, the other side is rejected, and the failed ids report no
/// more events.
#[case(needs(CmResponse))]
fn a_side_that_cannot_establish_rejects(site: &Site) {
    for state in [QpState::RTR, QpState::RTS] {
        let pair = site.pending_request().into_pair(site);
        pair.accept(&ConnParam::new());
        let Pair { client, server } = &pair;
        let response = client.expect(EventKind::ConnectResponse);
        let stubborn = Stubborn::new(&client.queue_pair, state);
        assert_refused(
            client.id.with_queue_pair(&stubborn).establish(&response),
            state,
        );
        assert_eq!(stubborn.last(), Some(QpState::ERR));
        assert_eq!(client.queue_pair.state(), Ok(Some(QpState::ERR)));
        let event = server.channel.next_event(PATIENCE).unwrap();
        assert_eq!(event.kind(), EventKind::Rejected);
        server
            .id
            .with_queue_pair(&server.queue_pair)
            .fail()
            .unwrap();
        assert_silence(site, &pair);
    }
}

#[case]
fn a_side_that_cannot_accept_rejects(site: &Site) {
    for state in [QpState::INIT, QpState::RTR, QpState::RTS] {
        let pair = site.pending_request().into_pair(site);
        let Pair { client, server } = &pair;
        // In RESET there is nothing to flush and no way to the error state.
        server
            .id
            .with_queue_pair(&server.queue_pair)
            .init()
            .unwrap();
        let stubborn = Stubborn::new(&server.queue_pair, state);
        let outcome = server
            .id
            .with_queue_pair(&stubborn)
            .accept(ConnParam::new());
        assert_refused(outcome, state);
        assert_eq!(stubborn.last(), Some(QpState::ERR));
        let event = client.channel.next_event(PATIENCE).unwrap();
        assert_eq!(event.kind(), EventKind::Rejected);
        client
            .id
            .with_queue_pair(&client.queue_pair)
            .fail()
            .unwrap();
        assert_silence(site, &pair);
    }
}

/// Checks that neither id reports an event until the device has opened and closed
/// another connection.
fn assert_silence(site: &Site, pair: &Pair) {
    site.pair().disconnect_both();
    for side in [&pair.client, &pair.server] {
        let event = side.channel.try_next_event().unwrap();
        assert!(event.is_none(), "{event:?}");
    }
}

#[case]
fn a_failed_disconnect_is_reported(site: &Site) {
    let pair = site.pair();
    let state = match site.soft {
        Soft::Rxe => QpState::ERR,
        Soft::Siw => QpState::SQD,
    };
    let Pair { client, server } = &pair;
    let stubborn = Stubborn::new(&client.queue_pair, state);
    assert_refused(client.id.with_queue_pair(&stubborn).disconnect(), state);
    // Nothing was sent: the other side ends the connection.
    server.disconnect();
    client.expect(EventKind::Disconnected);
}
