//! Empty writes that detect a lost peer.

use rdmacm::verbs::WcStatus;
use rdmacm::{Cause, MessageOptions};
use rdmacm_sim::MessageKind;

use super::{Hosts, SECOND};

#[test]
fn a_lost_peer_is_noticed_while_a_call_waits() {
    let hosts = Hosts::roce();
    let options = MessageOptions::new().keep_alive(10 * SECOND);
    let (near, _far) = hosts.connect_with(options, MessageOptions::new());
    hosts.server.set_responding(false);
    let began = hosts.fabric.now();
    let error = near.receive().unwrap_err();
    let Cause::Request(request) = error.cause() else {
        panic!("{error}");
    };
    assert_eq!(request.status, WcStatus::RETRY_EXC_ERR);
    let elapsed = hosts.fabric.now() - began;
    assert!((10 * SECOND..40 * SECOND).contains(&elapsed), "{elapsed:?}");
}

#[test]
fn a_peer_that_responds_is_left_alone() {
    for hosts in Hosts::each() {
        let options = MessageOptions::new().keep_alive(10 * SECOND);
        let (near, far) = hosts.connect_with(options, MessageOptions::new());
        near.set_deadline(3600 * SECOND);
        let error = near.receive().unwrap_err();
        assert!(matches!(error.cause(), Cause::Deadline), "{error}");
        // The peer has received nothing, and the connection still works.
        assert!(far.try_receive().unwrap().is_none());
        near.send(b"alive").unwrap();
        assert_eq!(far.receive().unwrap().unwrap()[..], *b"alive");
    }
}

#[test]
fn a_lost_keep_alive_is_sent_again() {
    for hosts in Hosts::each() {
        let options = MessageOptions::new().keep_alive(10 * SECOND);
        let (near, _far) = hosts.connect_with(options, MessageOptions::new());
        hosts.client.drop_next(MessageKind::Data, 3);
        near.set_deadline(100 * SECOND);
        let error = near.receive().unwrap_err();
        assert!(matches!(error.cause(), Cause::Deadline), "{error}");
        near.flush().unwrap();
    }
}

#[test]
fn the_accepting_side_notices_a_lost_peer() {
    let hosts = Hosts::roce();
    let options = MessageOptions::new().keep_alive(10 * SECOND);
    // The client has asked for seven retries, which have no limit.
    let (_near, far) = hosts.connect_with(MessageOptions::new(), options);
    assert_eq!(far.peer().map(|peer| peer.retry_count), Some(7));
    hosts.client.set_responding(false);
    let error = far.receive().unwrap_err();
    assert!(matches!(error.cause(), Cause::Request(_)), "{error}");
}
