//! Queue pairs of iWARP.

use rdmacm_core::{ConnParam, EventKind, QpType};
use rdmacm_verbs::{QpCaps, QueuePair, SendOperation, SendRequest, Sge, WcStatus};

use crate::connected::{REMOTE, create, done, open, poll, status};
use crate::pair::{Asked, Hosts};
use crate::queue_pairs::misnamed;

/// The connection of a client, and queue pairs of both sides. The second one has a receive request
/// of this memory, if any.
fn connected(receive: Option<Sge>) -> (Asked, [QueuePair; 2]) {
    let hosts = Hosts::iwarp();
    let [near, far] = [&hosts.client, &hosts.server].map(create);
    let asked = hosts.ask(ConnParam::new().with_queue_pair(&near));
    match receive {
        Some(memory) => far.post_receive(memory).unwrap(),
        None => far
            .post_receive(far.protection_domain().allocate(64).unwrap())
            .unwrap(),
    };
    let child = asked.request.child().unwrap();
    let accepted = child.accept(ConnParam::new().with_queue_pair(&far));
    accepted.unwrap();
    asked.client.expect(EventKind::Established);
    (asked, [near, far])
}

fn send_by(queue_pair: &QueuePair, operation: SendOperation, bytes: &[u8]) {
    let memory = queue_pair.protection_domain().register(bytes).unwrap();
    let request = SendRequest::new(operation, memory);
    queue_pair.post_send(request).unwrap();
}

#[test]
fn a_key_that_is_not_registered_here_fails_the_request() {
    let (_connection, [near, _far]) = connected(None);
    let request = SendRequest::new(SendOperation::Send, misnamed(&[7; 8]));
    near.post_send(request).unwrap();
    let sent = poll(near.send_cq()).unwrap();
    assert_eq!(status(&sent), WcStatus::LOC_QP_OP_ERR);
}

#[test]
fn a_message_that_is_too_long_fails() {
    let (_connection, [near, far]) = connected(None);
    send_by(&near, SendOperation::Send, &[1; 65]);
    let received = poll(far.recv_cq()).unwrap();
    assert_eq!(status(&received), WcStatus::LOC_LEN_ERR);
}

#[test]
fn a_receive_request_of_another_domain_fails() {
    let (_connection, [near, far]) = connected(Some(misnamed(&[0; 8])));
    send_by(&near, SendOperation::Send, &[1; 8]);
    let received = poll(far.recv_cq()).unwrap();
    assert_eq!(status(&received), WcStatus::GENERAL_ERR);
}

#[test]
fn an_invalidated_key_is_not_reported() {
    let (_connection, [near, far]) = connected(None);
    let memory = far.protection_domain().expose(64, REMOTE).unwrap();
    let invalidate = SendOperation::SendWithInvalidate(memory.remote().key());
    send_by(&near, invalidate, &[1; 8]);
    let received = poll(far.recv_cq()).unwrap();
    assert_eq!(done(&received).invalidated, None);
}

#[test]
fn a_device_has_one_gid() {
    let hosts = Hosts::iwarp();
    let context = open(&hosts.client);
    assert_eq!(context.port(1).unwrap().gid_table_len, 1);
    let gids = context.gids(1).unwrap();
    let id = hosts.routed(&hosts.client.channel().unwrap());
    assert_eq!(gids.len(), 1);
    assert_eq!(gids[0].gid, id.gids().unwrap().source);
    assert_eq!(gids[0].kind.as_deref(), Some("IB/RoCE v1"));
}

#[test]
fn a_queue_pair_has_a_send_queue() {
    let context = open(&Hosts::iwarp().client);
    let caps = QpCaps {
        max_send_wr: 0,
        ..QpCaps::default()
    };
    let options = QueuePair::options(QpType::RC).caps(caps);
    let refused = options.create(&context).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
}

#[test]
fn a_queue_pair_may_have_no_receive_queue() {
    let context = open(&Hosts::iwarp().client);
    let caps = QpCaps {
        max_recv_wr: 0,
        ..QpCaps::default()
    };
    let options = QueuePair::options(QpType::RC).caps(caps);
    let queue_pair = options.create(&context).unwrap();
    assert_eq!(queue_pair.caps().max_recv_wr, 0);
    let memory = queue_pair.protection_domain().allocate(8).unwrap();
    let refused = queue_pair.post_receive(memory).unwrap_err();
    let words = refused.error.to_string();
    assert!(words.contains("has no receive queue"), "{words}");
    queue_pair.move_to_error().unwrap();
    assert!(queue_pair.destroy().is_empty());
}
