//! Rejecting.

use rdmacm_core::{CmId, Event, EventKind, PortSpace, RejectReason};
use rdmacm_tests::{PATIENCE, Pair, PendingRequest, Side, Site, Soft};

use crate::packet_delay::hold_back_answers;
use rdmacm_tests_macros::case;

/// The rejection, with the reason that only RoCE transmits.
fn rejected(site: &Site, client: &Side, reason: RejectReason) -> Event {
    let event = client.channel.next_event(PATIENCE).unwrap();
    assert_eq!(event.kind(), EventKind::Rejected);
    let failure = event.failure().unwrap();
    match site.soft {
        Soft::Rxe => assert_eq!(failure.reject_reason(), Some(reason)),
        Soft::Siw => assert_eq!(failure.raw_os_error(), Some(libc::ECONNRESET)),
    }
    event
}

fn request(site: &Site) -> (Side, CmId) {
    let PendingRequest {
        client, request, ..
    } = site.pending_request();
    (client, request.into_child().unwrap())
}

#[case(covers(REJECT))]
fn a_request_is_rejected(site: &Site) {
    for words in [&b""[..], b"not today"] {
        let (client, child) = request(site);
        child.reject(words).unwrap();
        let event = rejected(site, &client, RejectReason::CONSUMER_DEFINED);
        assert!(event.private_data().starts_with(words));
    }
}

#[case]
fn options_are_rejected(site: &Site) {
    for words in [&b""[..], b"other options"] {
        let (client, child) = request(site);
        child.reject_ece(words).unwrap();
        let event = rejected(site, &client, RejectReason::VENDOR_OPTION_NOT_SUPPORTED);
        assert!(event.private_data().starts_with(words));
    }
}

#[case]
fn a_rejected_id_cannot_connect_again(site: &Site) {
    let (client, child) = request(site);
    child.reject(&[]).unwrap();
    rejected(site, &client, RejectReason::CONSUMER_DEFINED);
    let with = client.id.with_queue_pair(&client.queue_pair);
    let error = with.connect(rdmacm_core::ConnParam::new()).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
}

#[case]
fn a_request_is_answered_once(site: &Site) {
    let (_client, child) = request(site);
    child.reject(&[]).unwrap();
    let error = child.reject(&[]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    assert!(error.to_string().contains("nothing to refuse"), "{error}");
}

#[case]
fn rejecting_without_a_request_fails(site: &Site) {
    let listener = site.listening(PortSpace::TCP);
    let client = site.side(&listener);
    for id in [&client.id, &listener.id] {
        let error = id.reject(&[]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
}

#[case]
fn an_established_connection_cannot_be_rejected(site: &Site) {
    let pair = site.pair();
    for side in [&pair.client, &pair.server] {
        let error = side.id.reject(&[]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
    pair.disconnect_both();
}

#[case]
fn dropping_a_child_rejects(site: &Site) {
    let Pair { client, server } = site.pending_request().into_pair(site);
    drop(server);
    rejected(site, &client, RejectReason::CONSUMER_DEFINED);
}

/// siw stops reading at the end of TCP's stream, which a network may deliver first
/// (`siw_cm_llp_data_ready`).
#[case(needs(TcpHandshake))]
fn private_data_overtaken_by_the_disconnect_are_lost(site: &Site) {
    let (client, child) = request(site);
    let port = child.local_addr().unwrap().unwrap().port();
    hold_back_answers(&port.to_string());
    child.reject(b"not today").unwrap();
    let event = rejected(site, &client, RejectReason::CONSUMER_DEFINED);
    assert_eq!(event.private_data(), b"");
}
