//! The blocking face.

use std::time::Duration;

use rdmacm::core::{EventKind, IdHandle, RejectReason};
use rdmacm::{CLOSE_DEADLINE, Cause, Connection, Connector, Listener, Step};
use rdmacm_tests::{PATIENCE, SECOND, Site, Soft};
use rdmacm_verbs::QueuePair;

crate::cases!("face::blocking":
    a_name_connects_and_parts,
    a_rejection_says_what_the_peer_said,
    nobody_listens,
);

type Made = std::io::Result<QueuePair>;

/// Makes queue pairs on the site's device.
pub(crate) fn queue_pairs(site: &Site) -> impl Fn(&IdHandle) -> Made + Send + Sync + Copy {
    let site = *site;
    move |_: &IdHandle| Ok(site.queue_pair())
}

fn connector(site: &Site, port: u16) -> Connector {
    Connector::new(site.v4.to_string(), port.to_string()).deadline(PATIENCE)
}

fn a_name_connects_and_parts(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port();
    let (client, server) = std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let connector = connector(site, port).private_data(b"hello").unwrap();
            connector.connect_with(queue_pairs(site)).unwrap()
        });
        let incoming = listener.accept(PATIENCE).unwrap();
        assert!(incoming.private_data().starts_with(b"hello"));
        let server = incoming.accept(site.queue_pair()).unwrap();
        (client.join().unwrap(), server)
    });
    assert_eq!(client.peer_addr().unwrap().unwrap().port(), port);
    part(client, &server);
}

fn part(one: Connection<QueuePair>, other: &Connection<QueuePair>) {
    std::thread::scope(|scope| {
        let closing = scope.spawn(|| one.close(PATIENCE));
        let end = other.ended(PATIENCE).unwrap();
        assert_eq!(end.kind(), EventKind::Disconnected);
        closing.join().unwrap().unwrap();
    });
}

fn a_rejection_says_what_the_peer_said(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port();
    let error = std::thread::scope(|scope| {
        let client = scope.spawn(|| connector(site, port).connect_with(queue_pairs(site)));
        let incoming = listener.accept(PATIENCE).unwrap();
        incoming.reject(b"not you").unwrap();
        client.join().unwrap().unwrap_err()
    });
    assert_eq!(error.step(), Step::Connect);
    assert_eq!(error.device(), Some(site.device));
    assert!(error.is_rejected());
    assert!(error.private_data().starts_with(b"not you"));
    let reason = (site.soft == Soft::Rxe).then_some(RejectReason::CONSUMER_DEFINED);
    assert_eq!(error.reject_reason(), reason);
    assert!(!error.is_retryable());
}

fn nobody_listens(site: &Site) {
    let port = rdmacm_tests::free_port();
    let error = connector(site, port)
        .connect_with(queue_pairs(site))
        .unwrap_err();
    assert!(error.is_rejected(), "{error}");
    assert!(error.is_retryable());
    assert!(error.elapsed() < PATIENCE);
    assert!(!matches!(error.cause(), Cause::Deadline));
    println!("{error}");
    let _ = (CLOSE_DEADLINE, SECOND, Duration::ZERO);
}
