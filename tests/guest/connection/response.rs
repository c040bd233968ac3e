//! The peer's reply, which the connecting side answers on InfiniBand and RoCE only.

use rdmacm_core::{ConnParam, Error, EventKind, Notification, QpState, RejectReason};
use rdmacm_tests::{PATIENCE, Site};
use rdmacm_tests_macros::case;

#[case(needs(CmResponse))]
fn the_connecting_side_rejects_it(site: &Site) {
    let pair = site.pending_request().into_pair(site);
    pair.accept(&ConnParam::new());
    pair.client.expect(EventKind::ConnectResponse);
    pair.client.id.reject(b"changed my mind").unwrap();
    let event = pair.server.channel.next_event(PATIENCE).unwrap();
    assert_eq!(event.kind(), EventKind::Rejected);
    let reason = event.failure().unwrap().reject_reason();
    assert_eq!(reason, Some(RejectReason::CONSUMER_DEFINED));
    assert!(event.private_data().starts_with(b"changed my mind"));
    assert_eq!(event.private_data().len(), 148);
}

#[case(needs(CmResponse))]
fn the_connecting_side_rejects_its_options(site: &Site) {
    let pair = site.pending_request().into_pair(site);
    pair.accept(&ConnParam::new());
    pair.client.expect(EventKind::ConnectResponse);
    pair.client.id.reject_ece(&[]).unwrap();
    let event = pair.server.channel.next_event(PATIENCE).unwrap();
    let reason = event.failure().unwrap().reject_reason();
    assert_eq!(reason, Some(RejectReason::VENDOR_OPTION_NOT_SUPPORTED));
}

#[case(needs(CmResponse))]
fn a_rejected_response_cannot_be_established(site: &Site) {
    let pair = site.pending_request().into_pair(site);
    pair.accept(&ConnParam::new());
    pair.client.expect(EventKind::ConnectResponse);
    pair.client.id.reject(&[]).unwrap();
    let error = pair.client.id.establish().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    assert!(error.to_string().contains("answered already"), "{error}");
}

/// The connecting side's last message is lost, and its data arrive.
#[case(needs(CmResponse))]
fn data_establish_an_unanswered_response(site: &Site) {
    let pair = site.pending_request().into_pair(site);
    pair.accept(&ConnParam::new());
    pair.client.expect(EventKind::ConnectResponse);
    let server = &pair.server;
    server
        .id
        .notify(Notification::CommunicationEstablished)
        .unwrap();
    server.expect(EventKind::Established);
    assert_eq!(server.queue_pair.state(), Ok(Some(QpState::RTS)));
    let again = server.id.notify(Notification::CommunicationEstablished);
    assert_eq!(again.unwrap_err().raw_os_error(), Some(libc::EISCONN));
}

#[case(needs(CmResponse))]
fn a_response_is_answered_once(site: &Site) {
    let pair = site.pair();
    let error = pair.client.id.establish().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    pair.disconnect_both();
}

/// The kernel would treat it as a rejection, although the peer has not answered yet.
#[case(needs(CmResponse))]
fn answering_too_early_is_refused_before_the_kernel(site: &Site) {
    let pair = site.pending_request().into_pair(site);
    let client = &pair.client.id;
    for answered in [
        client.establish(),
        client.accept(ConnParam::new()),
        client.reject(&[]),
    ] {
        let error = answered.unwrap_err();
        assert!(matches!(error, Error::InvalidInput { .. }), "{error}");
    }
    pair.accept(&ConnParam::new());
    pair.establish(site);
    pair.disconnect_both();
}
