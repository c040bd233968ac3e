//! Queue pairs that fail to change their state.

use rdmacm_core::{ConnParam, Error, EventKind, QpState};
use rdmacm_tests::{PATIENCE, Pair, RefusingQueuePair, Site, Soft, refusal};
use rdmacm_tests_macros::case;

fn assert_refused(outcome: Result<(), Error>, state: QpState) {
    let error = refusal().into();
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
        let refusing = RefusingQueuePair::new(&client.queue_pair, state);
        assert_refused(
            client.id.with_queue_pair(&refusing).establish(&response),
            state,
        );
        assert_eq!(refusing.last_state(), Some(QpState::ERR));
        assert_eq!(client.queue_pair.state(), Ok(Some(QpState::ERR)));
        let event = server.channel.next_event(PATIENCE).unwrap();
        assert_eq!(event.kind(), EventKind::Rejected);
        server
            .id
            .with_queue_pair(&server.queue_pair)
            .move_to_error()
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
        let refusing = RefusingQueuePair::new(&server.queue_pair, state);
        let outcome = server
            .id
            .with_queue_pair(&refusing)
            .accept(ConnParam::new());
        assert_refused(outcome, state);
        assert_eq!(refusing.last_state(), Some(QpState::ERR));
        let event = client.channel.next_event(PATIENCE).unwrap();
        assert_eq!(event.kind(), EventKind::Rejected);
        client
            .id
            .with_queue_pair(&client.queue_pair)
            .move_to_error()
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
    let refusing = RefusingQueuePair::new(&client.queue_pair, state);
    assert_refused(client.id.with_queue_pair(&refusing).disconnect(), state);
    // Nothing was sent: the other side ends the connection.
    server.disconnect();
    client.expect(EventKind::Disconnected);
}
