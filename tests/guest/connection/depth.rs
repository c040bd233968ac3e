//! The number of outstanding reads and atomics.

use std::sync::Arc;

use rdmacm_core::{CommandNumber, ConnInfo, ConnParam, Error, Event, PortSpace, QueuePair};
use rdmacm_tests::{Counting, Listening, Pair, PendingRequest, Site, Soft};
use rdmacm_tests_macros::case;

fn depths(info: ConnInfo) -> (u8, u8) {
    (info.responder_resources, info.initiator_depth)
}

/// The depths in a reply. siw exchanges the two, and an accepting side gets as many as
/// were requested.
fn answered(site: &Site, answer: &Event) -> (u8, u8) {
    let (answers, asks) = depths(answer.conn().unwrap());
    match site.soft {
        Soft::Rxe => (answers, asks),
        Soft::Siw => (asks, answers),
    }
}

fn requested_depths(pending: &PendingRequest) -> (u8, u8) {
    depths(pending.request.conn().unwrap())
}

/// The depths with which two rxe queue pairs were moved: those of the responder and of
/// the initiator, of client and server.
fn moved(pair: &Pair) -> [(u8, u8); 2] {
    [&pair.client, &pair.server].map(|side| {
        let attr = side.queue_pair.query().unwrap();
        (attr.max_destination_rd_atomic, attr.max_rd_atomic)
    })
}

#[case]
fn the_default_is_the_devices_limit(site: &Site) {
    let request = site.pending_request();
    let limits = request.client.queue_pair.depth_limits();
    let most = (limits.responder_resources, limits.initiator_depth);
    // Both devices have the same limit for both.
    assert_eq!(requested_depths(&request), most);
    let pair = request.into_pair(site);
    pair.accept(&ConnParam::new());
    let answer = pair.establish(site);
    assert_eq!(answered(site, &answer), most);
    if site.soft == Soft::Rxe {
        assert_eq!(moved(&pair), [most, most]);
    }
}

/// This is also the default.
#[case]
fn all_ones_mean_the_devices_limit(site: &Site) {
    let most = ConnParam::DEVICE_MAX;
    let all = ConnParam::new()
        .responder_resources(most)
        .initiator_depth(most);
    let request = site.pending_request_with(&all);
    let limits = request.client.queue_pair.depth_limits();
    let most = (limits.responder_resources, limits.initiator_depth);
    assert_eq!(requested_depths(&request), most);
    let pair = request.into_pair(site);
    pair.accept(&all);
    let answer = pair.establish(site);
    assert_eq!(answered(site, &answer), most);
}

/// The initiator depth of one side is the responder resources of the other.
#[case]
fn a_side_requests_less(site: &Site) {
    let param = ConnParam::new().responder_resources(3).initiator_depth(5);
    let request = site.pending_request_with(&param);
    assert_eq!(requested_depths(&request), (5, 3));
    let pair = request.into_pair(site);
    let param = ConnParam::new().responder_resources(4).initiator_depth(2);
    pair.accept(&param);
    let answer = pair.establish(site);
    let granted = match site.soft {
        Soft::Rxe => 4,
        Soft::Siw => 5,
    };
    assert_eq!(answered(site, &answer), (2, granted));
    if site.soft == Soft::Rxe {
        // rxe rounds responder resources up to a power of two.
        let [client, server] = moved(&pair);
        assert_eq!((client.1, server.1), (4, 2));
        assert!(client.0 >= 2 && server.0 >= 4, "{client:?} {server:?}");
    }
}

#[case]
fn accepting_grants_no_more_than_requested(site: &Site) {
    let param = ConnParam::new().responder_resources(2).initiator_depth(1);
    let pair = site.pending_request_with(&param).into_pair(site);
    pair.accept(&ConnParam::new());
    let answer = pair.establish(site);
    assert_eq!(answered(site, &answer), (2, 1));
}

#[case]
fn the_accepting_side_can_insist(site: &Site) {
    let param = ConnParam::new().responder_resources(8).initiator_depth(2);
    let pair = site.pending_request_with(&param).into_pair(site);
    pair.accept(&ConnParam::new().responder_resources(7).initiator_depth(1));
    let answer = pair.establish(site);
    assert_eq!(answered(site, &answer), (1, 7));
}

#[case]
fn no_depth_is_requested_without_a_queue_pair(site: &Site) {
    let listener = site.listening(PortSpace::TCP);
    let client = site.side(&listener);
    let number = client.queue_pair.number();
    let param = ConnParam::new().qp_number(number);
    client.id.connect(param).unwrap();
    let request = listener.next_request();
    assert_eq!(depths(request.conn().unwrap()), (0, 0));
}

#[case]
fn more_than_the_device_has_is_refused_before_the_kernel(site: &Site) {
    let [ours, theirs] = [(); 2].map(|()| Arc::new(Counting::new()));
    let listener = Listening::on(site.channel_on(&theirs), site, PortSpace::TCP);
    let client = site.side_on(site.channel_on(&ours), &listener);
    let limits = client.queue_pair.depth_limits();
    let (answers, asks) = (limits.responder_resources + 1, limits.initiator_depth + 1);
    let beyond = [
        ConnParam::new().responder_resources(answers),
        ConnParam::new().initiator_depth(asks),
    ];
    let refused = |error| assert!(matches!(error, Error::InvalidInput { .. }), "{error}");
    for param in &beyond {
        let with = client.id.with_queue_pair(&client.queue_pair);
        refused(with.connect(param).unwrap_err());
    }
    assert_eq!(ours.of(CommandNumber::CONNECT), 0);
    let pair = PendingRequest::new(client, listener, &ConnParam::new()).into_pair(site);
    for param in &beyond {
        let with = pair.server.id.with_queue_pair(&pair.server.queue_pair);
        refused(with.accept(param).unwrap_err());
    }
    assert_eq!(theirs.of(CommandNumber::ACCEPT), 0);
    assert_eq!(theirs.of(CommandNumber::REJECT), 0);
    pair.accept(&ConnParam::new());
    pair.establish(site);
}
