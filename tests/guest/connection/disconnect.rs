//! A connection from its request to its end.

use rdmacm_core::{ConnParam, EventKind, PortSpace, QpState};
use rdmacm_tests::{PATIENCE, Pair, Side, Site, Soft, expect, free_qp_number};
use rdmacm_tests_macros::case;

/// The queue pair's state as the driver reports it; siw's report is not reliable.
fn assert_state(site: &Site, at: &Side, state: QpState) {
    if site.soft == Soft::Rxe {
        assert_eq!(at.queue_pair.state(), Ok(Some(state)));
    }
}

#[case(covers(ACCEPT))]
fn queue_pairs_follow_the_connection(site: &Site) {
    let pair = site.pending_request().into_pair(site);
    assert_state(site, &pair.client, QpState::INIT);
    pair.accept(&ConnParam::new());
    assert_state(site, &pair.server, QpState::RTS);
    pair.establish(site);
    assert_state(site, &pair.client, QpState::RTS);
    if site.soft == Soft::Rxe {
        let client = pair.client.queue_pair.query().unwrap();
        assert_eq!(
            client.destination_qp_number,
            pair.server.queue_pair.number()
        );
    }
    pair.client.disconnect();
    assert_state(site, &pair.client, QpState::ERR);
    pair.server.expect(EventKind::Disconnected);
    assert_state(site, &pair.server, QpState::RTS);
    pair.server.disconnect();
    assert_state(site, &pair.server, QpState::ERR);
    pair.client.expect(EventKind::Disconnected);
    if site.soft == Soft::Rxe {
        pair.client.expect(EventKind::TimewaitExit);
        pair.server.expect(EventKind::TimewaitExit);
    }
}

/// With invented queue pair numbers on rxe; siw needs queue pairs, and moves them.
#[case(covers(CONNECT))]
fn bare_commands_connect(site: &Site) {
    let queue_pairs = (site.soft == Soft::Siw).then(|| [(); 2].map(|()| site.queue_pair()));
    let number = |side: usize| match &queue_pairs {
        Some(queue_pairs) => queue_pairs[side].number(),
        None => free_qp_number(),
    };
    let listener = site.listening(PortSpace::TCP);
    let channel = site.channel();
    let client = site.routed(&channel, listener.address());
    let ours = number(0);
    client.connect(ConnParam::new().qp_number(ours)).unwrap();
    let request = listener.next_request();
    let theirs = number(1);
    let asks = request.conn().unwrap();
    let server = request.into_child().unwrap();
    server.accept(ConnParam::new().qp_number(theirs)).unwrap();
    match site.soft {
        Soft::Rxe => {
            let response = expect(&channel, EventKind::ConnectResponse);
            assert_eq!(asks.qp_number, ours);
            assert_eq!(response.conn().unwrap().qp_number, theirs);
            client.establish().unwrap();
        }
        Soft::Siw => {
            expect(&channel, EventKind::Established);
            let error = client.establish().unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
            assert!(
                error
                    .to_string()
                    .contains("the kernel completes the handshake"),
                "{error}"
            );
        }
    }
    let established = expect(&listener.channel, EventKind::Established);
    assert!(*established.id() == server);
    client.disconnect().unwrap();
    expect(&listener.channel, EventKind::Disconnected);
    server.disconnect().unwrap();
    expect(&channel, EventKind::Disconnected);
}

#[case(covers(DISCONNECT))]
fn either_side_disconnects(site: &Site) {
    let pair = site.pair();
    pair.server.disconnect();
    pair.client.expect(EventKind::Disconnected);
    pair.client.disconnect();
    pair.server.expect(EventKind::Disconnected);
}

#[case]
fn dropping_an_id_disconnects(site: &Site) {
    let Pair { client, server } = site.pair();
    drop(client);
    server.expect(EventKind::Disconnected);
    let Pair { client, server } = site.pair();
    drop(server);
    client.expect(EventKind::Disconnected);
}

#[case]
fn both_sides_disconnect_at_once(site: &Site) {
    let pair = site.pair();
    pair.client.disconnect();
    pair.server.disconnect();
    for side in [&pair.client, &pair.server] {
        let event = side.channel.next_event(PATIENCE).unwrap();
        assert_eq!(event.kind(), EventKind::Disconnected);
    }
}

#[case]
fn disconnecting_twice_succeeds(site: &Site) {
    let pair = site.pair();
    pair.disconnect_both();
    pair.client.id.disconnect().unwrap();
    pair.server.id.disconnect().unwrap();
}

#[case]
fn an_id_connects_once(site: &Site) {
    let pair = site.pair();
    let number = pair.client.queue_pair.number();
    let again = || {
        let param = ConnParam::new().qp_number(number);
        let error = pair.client.id.connect(param).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
        assert!(error.to_string().contains("has tried already"), "{error}");
    };
    again();
    pair.disconnect_both();
    again();
}
