//! Private data of each message, up to the limit and beyond.

use std::sync::Arc;

use rdmacm_core::{CommandNumber, ConnParam, Error, EventKind, PortSpace, RejectReason};
use rdmacm_tests::{Counting, Listening, PATIENCE, PendingRequest, Side, Site, Soft};
use rdmacm_tests_macros::case;

/// Bytes that differ from padding.
fn bytes(length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| u8::try_from(at % 251).unwrap() | 1)
        .collect()
}

fn param(length: usize) -> Result<ConnParam, Error> {
    ConnParam::new().private_data(&bytes(length))
}

/// The limit on iWARP, or of the message on rxe.
fn room(site: &Site, on_rxe: usize) -> usize {
    match site.soft {
        Soft::Rxe => on_rxe,
        Soft::Siw => 251,
    }
}

/// Longer private data is refused as early as possible: by the parameters if no
/// transport transmits it, otherwise by the command.
fn assert_too_long(outcome: Result<(), Error>, room: usize) {
    let refused = Error::PrivateDataTooLong {
        length: room + 1,
        limit: room,
    };
    assert_eq!(outcome.unwrap_err(), refused);
}

/// A listener and a client before its request, with counts of their commands.
fn counted(site: &Site) -> ([Arc<Counting>; 2], Side, Listening) {
    let devices = [(); 2].map(|()| Arc::new(Counting::new()));
    let listener = Listening::on(site.channel_on(&devices[1]), site, PortSpace::TCP);
    let client = site.side_on(site.channel_on(&devices[0]), &listener);
    (devices, client, listener)
}

#[case]
fn a_request_carries_the_maximum(site: &Site) {
    let room = room(site, 56);
    let ([ours, _], client, listener) = counted(site);
    let with = client.id.with_queue_pair(&client.queue_pair);
    let too_long = param(room + 1).and_then(|param| with.connect(param));
    assert_too_long(too_long, room);
    let bare = param(room + 1).and_then(|param| client.id.connect(param));
    assert_too_long(bare, room);
    assert_eq!(ours.of(CommandNumber::CONNECT), 0);
    let pending = PendingRequest::new(client, listener, &param(room).unwrap());
    assert_eq!(pending.request.private_data(), bytes(room));
}

#[case]
fn an_accept_carries_the_maximum(site: &Site) {
    let room = room(site, 196);
    let ([_, theirs], client, listener) = counted(site);
    let pair = PendingRequest::new(client, listener, &ConnParam::new()).into_pair(site);
    let with = pair.server.id.with_queue_pair(&pair.server.queue_pair);
    let too_long = param(room + 1).and_then(|param| with.accept(param));
    assert_too_long(too_long, room);
    let bare = param(room + 1).and_then(|param| pair.server.id.accept(param));
    assert_too_long(bare, room);
    assert_eq!(theirs.of(CommandNumber::ACCEPT), 0);
    assert_eq!(theirs.of(CommandNumber::REJECT), 0);
    pair.accept(&param(room).unwrap());
    let answer = pair.establish(site);
    assert_eq!(answer.private_data(), bytes(room));
}

#[case]
fn a_rejection_carries_the_maximum(site: &Site) {
    let room = room(site, 148);
    let ([_, theirs], client, listener) = counted(site);
    let PendingRequest {
        client, request, ..
    } = PendingRequest::new(client, listener, &ConnParam::new());
    let child = request.into_child().unwrap();
    assert_too_long(child.reject(&bytes(room + 1)), room);
    assert_too_long(child.reject_ece(&bytes(room + 1)), room);
    assert_eq!(theirs.of(CommandNumber::REJECT), 0);
    child.reject(&bytes(room)).unwrap();
    let event = client.channel.next_event(PATIENCE).unwrap();
    assert_eq!(event.kind(), EventKind::Rejected);
    assert_eq!(event.private_data(), bytes(room));
}

#[case]
fn short_data_are_padded_where_their_length_is_not_sent(site: &Site) {
    let reason = bytes(5);
    let expected = |field: usize| {
        let mut expected = reason.clone();
        if site.soft == Soft::Rxe {
            expected.resize(field, 0);
        }
        expected
    };
    let pending = site.pending_request_with(&param(5).unwrap());
    assert_eq!(pending.request.private_data(), expected(56));
    let pair = pending.into_pair(site);
    pair.accept(&param(5).unwrap());
    assert_eq!(pair.establish(site).private_data(), expected(196));
    let PendingRequest {
        client, request, ..
    } = site.pending_request();
    request.into_child().unwrap().reject(&reason).unwrap();
    let event = client.channel.next_event(PATIENCE).unwrap();
    assert_eq!(event.private_data(), expected(148));
    let reason = event.failure().unwrap().reject_reason();
    let defined = (site.soft == Soft::Rxe).then_some(RejectReason::CONSUMER_DEFINED);
    assert_eq!(reason, defined);
}

#[case]
fn empty_data_arrive_as_none_or_zeros(site: &Site) {
    let pending = site.pending_request();
    let zeros = |field: usize| match site.soft {
        Soft::Rxe => vec![0; field],
        Soft::Siw => Vec::new(),
    };
    assert_eq!(pending.request.private_data(), zeros(56));
    let pair = pending.into_pair(site);
    pair.accept(&ConnParam::new());
    assert_eq!(pair.establish(site).private_data(), zeros(196));
}
