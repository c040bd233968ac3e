//! A queue pair that is reset sends its next peer nothing of what was discarded.

use rdmacm_core::{AccessFlags, QpAttr, QpAttrMask, QpState, QpType};
use rdmacm_tests::Site;
use rdmacm_tests::modify_qp::{INIT, QKEY, RTR, RTS, attributes};
use rdmacm_tests_macros::case;
use rdmacm_verbs::{QueuePair, SendOperation, SendRequest};
use zerocopy::FromZeros;

use super::{ROOMY, brought, received, room, sent, sge};

/// Bytes of the messages that are discarded.
const DISCARDED: [u8; 5] = [0, 1, 2, 3, 4];
/// The byte of the message to the next peer.
const NEXT: u8 = 9;
/// The length of the GRH in front of a datagram.
const ROUTE: usize = 40;

fn message(queue_pair: &QueuePair, byte: u8) -> SendRequest<'static> {
    SendRequest::new(SendOperation::Send, sge(queue_pair, &[byte]))
}

fn reset(queue_pair: &QueuePair) {
    let mut attr = QpAttr::new_zeroed();
    attr.qp_state = QpState::RESET;
    queue_pair.modify(&attr, QpAttrMask::STATE).unwrap();
}

/// A queue pair with this peer, which may only send messages to it: a write of any length, also of
/// none, would end the connection.
fn receiver(site: &Site, peer: &QueuePair) -> QueuePair {
    let queue_pair = site.queue_pair_with(ROOMY);
    let mut attr = attributes(site, peer.number(), QpState::INIT);
    attr.access_flags = AccessFlags::LOCAL_WRITE;
    for (state, mask) in [
        (QpState::INIT, INIT),
        (QpState::RTR, RTR),
        (QpState::RTS, RTS),
    ] {
        attr.qp_state = state;
        queue_pair.modify(&attr, mask).unwrap();
    }
    queue_pair
}

/// Connects a queue pair to another one after a reset, and sends a message.
fn reconnect(site: &Site, client: &QueuePair) {
    let server = receiver(site, client);
    server.post_receive(room(&server, 1)).unwrap();
    site.move_to_rts(client, server.number());
    let work = client.post_send(message(client, NEXT)).unwrap();
    let completion = sent(client);
    assert_eq!(completion.work, work);
    assert!(completion.result().is_ok(), "{completion:?}");
    assert_eq!(brought(received(&server), 1), [NEXT]);
    for queue_pair in [client, &server] {
        assert_eq!(queue_pair.state(), Ok(Some(QpState::RTS)));
        assert!(queue_pair.send_cq().poll().unwrap().is_none());
    }
}

#[case(needs(ModifyQp))]
fn a_reset_discards_requests_whose_doorbell_was_not_rung(site: &Site) {
    let [client, server] = site.pair_in_rts(QpType::RC, ROOMY);
    // The first request of a connection rings the doorbell.
    server.post_receive(room(&server, 1)).unwrap();
    client.post_send(message(&client, NEXT)).unwrap();
    assert!(sent(&client).result().is_ok());
    for byte in DISCARDED {
        let _queued = client.queue_send(message(&client, byte)).unwrap();
    }
    reset(&client);
    assert_eq!(client.outstanding_sends(), 0);
    reconnect(site, &client);
}

#[case(needs(ModifyQp))]
fn a_reset_discards_requests_that_are_not_acknowledged(site: &Site) {
    let [client, server] = site.pair_in_rts(QpType::RC, ROOMY);
    drop(server);
    for byte in DISCARDED {
        client.post_send(message(&client, byte)).unwrap();
    }
    reset(&client);
    assert_eq!(client.outstanding_sends(), 0);
    reconnect(site, &client);
}

#[case(alone, needs(Datagrams))]
fn a_reset_discards_datagrams(site: &Site) {
    let [client, server] = site.pair_in_rts(QpType::UD, ROOMY);
    let path = site.path_to_itself();
    let handle = client.protection_domain().create_address_handle(path);
    let handle = handle.unwrap();
    let datagram = |byte| message(&client, byte).destination(&handle, server.number(), QKEY);
    server.post_receive(room(&server, ROUTE + 1)).unwrap();
    client.post_send(datagram(NEXT)).unwrap();
    assert!(sent(&client).result().is_ok());
    drop(received(&server));
    for byte in DISCARDED {
        let _queued = client.queue_send(datagram(byte)).unwrap();
    }
    reset(&client);
    server.post_receive(room(&server, ROUTE + 1)).unwrap();
    site.move_to_rts(&client, server.number());
    client.post_send(datagram(NEXT)).unwrap();
    assert!(sent(&client).result().is_ok());
    assert_eq!(brought(received(&server), ROUTE + 1)[ROUTE..], [NEXT]);
    assert_eq!(client.state(), Ok(Some(QpState::RTS)));
}
