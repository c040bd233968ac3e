//! Commands in an invalid order.

use std::time::Instant;

use rdmacm_core::{ConnParam, Error, EventKind, PortSpace, QpState};
use rdmacm_tests::{PATIENCE, Pair, PendingRequest, Side, Site, Soft, expect};
use rdmacm_tests_macros::case;

fn refused(outcome: Result<(), Error>, words: &str) {
    let error = outcome.unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[case]
fn connecting_needs_a_route(site: &Site) {
    let param = ConnParam::new().qp_number(0x77);
    let channel = site.channel();
    let unbound = channel.create_id(PortSpace::TCP).unwrap();
    refused(unbound.connect(&param), "route is not resolved");
    let resolved = site.resolved(&channel, site.v4(7471));
    refused(resolved.connect(&param), "route is not resolved");
    let listener = site.listening(PortSpace::TCP);
    refused(listener.id.connect(&param), "route is not resolved");
}

#[case]
fn accepting_needs_a_request(site: &Site) {
    let param = ConnParam::new().qp_number(0x77);
    let listener = site.listening(PortSpace::TCP);
    let client = site.side(&listener);
    for id in [&client.id, &listener.id] {
        refused(id.accept(&param), "brought no request");
    }
}

#[case]
fn a_request_is_accepted_once(site: &Site) {
    let pair = site.pair();
    let param = ConnParam::new().qp_number(pair.server.queue_pair.number());
    refused(pair.server.id.accept(&param), "accepted already");
    refused(pair.client.id.accept(&param), "brought no request");
    pair.disconnect_both();
}

/// The kernel would treat any other command as a rejection, after which destroying the
/// id takes more than a minute on RoCE.
#[case]
fn the_accepting_side_waits_for_the_peer(site: &Site) {
    let pair = site.pending_request().into_pair(site);
    pair.accept(&ConnParam::new());
    let Side { id, queue_pair, .. } = &pair.server;
    let param = || ConnParam::new().qp_number(queue_pair.number());
    for answered in [
        id.accept(param()),
        id.with_queue_pair(queue_pair).accept(param()),
        id.reject(&[]),
        id.establish(),
    ] {
        let error = answered.unwrap_err();
        assert!(matches!(error, Error::InvalidInput { .. }), "{error}");
    }
    pair.establish(site);
    pair.disconnect_both();
}

/// The accepting side gets no event before it answers.
#[case(waiting)]
fn accepting_a_vanished_peer(site: &Site) {
    let Pair { client, server } = site.pending_request().into_pair(site);
    // On iWARP this takes as long as the kernel's timeout for the reply.
    drop(client);
    let words = "the peer has gone";
    let param = ConnParam::new().qp_number(server.queue_pair.number());
    match site.soft {
        Soft::Rxe => {
            // The attributes show when the cancellation has arrived.
            let late = Instant::now() + PATIENCE;
            while server.id.init_qp_attr(QpState::RTR).is_ok() {
                assert!(Instant::now() < late, "the cancellation is lost");
                std::thread::yield_now();
            }
            refused(server.id.accept(param), words);
        }
        Soft::Siw => {
            if let Err(error) = server.id.accept(param) {
                assert_eq!(error.raw_os_error(), Some(libc::ECONNRESET));
                assert!(error.to_string().contains(words), "{error}");
            } else {
                // Linux 6.1 detects the TCP reset only then.
                server.expect(EventKind::Established);
                server.expect(EventKind::Disconnected);
            }
        }
    }
    assert!(server.channel.try_next_event().unwrap().is_none());
}

#[case]
fn disconnecting_needs_a_connection(site: &Site) {
    let listener = site.listening(PortSpace::TCP);
    let client = site.side(&listener);
    refused(client.id.disconnect(), "has not begun to connect");
    let (_channel, unbound) = site.id();
    refused(unbound.disconnect(), "has not begun to connect");
}

#[case]
fn establishing_needs_a_response(site: &Site) {
    let listener = site.listening(PortSpace::TCP);
    let client = site.side(&listener);
    refused(client.id.establish(), "no response of a peer");
    let pair = PendingRequest::new(client, listener, &ConnParam::new()).into_pair(site);
    pair.accept(&ConnParam::new());
    pair.establish(site);
    pair.disconnect_both();
}

#[case]
fn an_invalid_qp_number_is_refused_before_the_kernel(site: &Site) {
    let listener = site.listening(PortSpace::TCP);
    let client = site.side(&listener);
    for param in [
        ConnParam::new().qp_number(0x100_0000),
        ConnParam::new().retry_count(8),
        ConnParam::new().rnr_retry_count(8),
    ] {
        let outcome = client.id.connect(param);
        assert!(matches!(outcome, Err(Error::InvalidInput { .. })));
    }
    client
        .id
        .with_queue_pair(&client.queue_pair)
        .connect(ConnParam::new())
        .unwrap();
    let _ = listener.next_request();
}

/// Without a listener: on RoCE the request is rejected, and the id has connected; on
/// iWARP TCP fails first, and the id may try again.
#[case]
fn a_refused_connection_leaves_the_id_usable(site: &Site) {
    let gone = site.listening(PortSpace::TCP);
    let address = gone.address();
    let client = site.side(&gone);
    drop(gone);
    let with = client.id.with_queue_pair(&client.queue_pair);
    let outcome = with.connect(ConnParam::new());
    if site.soft == Soft::Rxe {
        outcome.unwrap();
        let event = client.channel.next_event(PATIENCE).unwrap();
        assert_eq!((event.kind(), event.status()), (EventKind::Rejected, 8));
        return;
    }
    let error = outcome.unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ECONNREFUSED));
    assert!(error.to_string().contains("no server listens"), "{error}");
    let (channel, listener) = site.id();
    listener.bind(address).unwrap();
    listener.listen(1).unwrap();
    with.connect(ConnParam::new()).unwrap();
    expect(&channel, EventKind::ConnectRequest);
}
