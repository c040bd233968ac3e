//! Requests whose doorbell is rung later.

use rdmacm_tests::Site;
use rdmacm_tests_macros::case;
use rdmacm_verbs::{QueuePair, SendOperation, SendRequest};

use super::{brought, received, room, roomy, sent, sge};

fn send(queue_pair: &QueuePair, byte: u8) -> SendRequest<'static> {
    SendRequest::new(SendOperation::Send, sge(queue_pair, &[byte]))
}

#[case]
fn one_doorbell_is_for_all_that_was_queued(site: &Site) {
    let pair = roomy(site);
    let (client, server) = (&pair.client.queue_pair, &pair.server.queue_pair);
    for _ in 0..4 {
        server.post_receive(room(server, 1)).unwrap();
    }
    // The first one looks whether the queue pair is connected.
    let first = client.queue_send(send(client, 0)).unwrap().work();
    let second = client.queue_send(send(client, 1)).unwrap();
    let works = [first, second.work()];
    second.ring_doorbell().unwrap();
    for (number, work) in (0..).zip(works) {
        assert_eq!(brought(received(server), 1), [number]);
        assert_eq!(sent(client).work, work);
    }
    let queued = client.queue_send(send(client, 2)).unwrap().work();
    let posted = client.post_send(send(client, 3)).unwrap();
    for (number, work) in (2..).zip([queued, posted]) {
        assert_eq!(brought(received(server), 1), [number]);
        assert_eq!(sent(client).work, work);
    }
}

#[case]
fn a_request_is_not_queued_before_the_connection(site: &Site) {
    let queue_pair = site.queue_pair();
    let refused = queue_pair.queue_send(send(&queue_pair, 0)).unwrap_err();
    let returned = refused.returned.into_sg_list();
    assert_eq!(returned.len(), 1, "{:?}", refused.error);
    assert_eq!(queue_pair.outstanding_sends(), 0);
}

#[case]
fn a_queued_request_of_a_failed_queue_pair_is_flushed_once(site: &Site) {
    let pair = roomy(site);
    let client = &pair.client.queue_pair;
    let queued = client.queue_send(send(client, 0)).unwrap();
    let work = queued.work();
    client.move_to_error().unwrap();
    let flushed = sent(client);
    assert_eq!(flushed.work, work);
    assert!(flushed.result().is_err());
    // The kernel may accept it or not.
    let _ = queued.ring_doorbell();
    assert!(client.send_cq().poll().unwrap().is_none());
    assert_eq!(client.outstanding_sends(), 0);
}
