//! Several addresses for one peer.

use std::thread;
use std::time::{Duration, Instant};

use rdmacm::addrinfo::{Hints, resolve};
use rdmacm::core::Family;
use rdmacm::{Cause, Connector, Listener, RetryPolicy, Stage};
use rdmacm_tests::{PATIENCE, PLAIN, Site, free_port};

use crate::queue_pairs::QueuePairs;
use rdmacm_tests_macros::case;

/// The guest's /etc/hosts gives both of the device's addresses one name.
#[case]
fn the_first_reachable_address_wins(site: &Site) {
    let v6 = Listener::options().v6_only().bind(site.v6(0)).unwrap();
    let port = v6.local_addr().port().to_string();
    // There is no listener on the IPv4 address, which comes first.
    let mut candidates = resolve(&*site.v4.to_string(), &*port, &Hints::rc()).unwrap();
    candidates.extend(resolve(&*site.v6.to_string(), &*port, &Hints::rc()).unwrap());
    let connector = Connector::new(&candidates).deadline(PATIENCE);
    let queue_pairs = QueuePairs::new(site);
    let client = thread::scope(|scope| {
        let client = scope.spawn(|| connector.connect_with(queue_pairs.clone()).unwrap());
        let incoming = v6.accept(PATIENCE).unwrap();
        drop(incoming.accept_with(queue_pairs.clone()).unwrap());
        client.join().unwrap()
    });
    let peer = client.peer_addr().unwrap();
    assert_eq!(peer.family(), Family::V6);
}

#[case]
fn a_silent_address_does_not_delay_the_next(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port();
    let addresses = [(site.silent, port), (site.v4, port)];
    let attempt_delay = Duration::from_millis(50);
    let connector = Connector::new(addresses)
        .deadline(PATIENCE)
        .attempt_delay(attempt_delay);
    let queue_pairs = QueuePairs::new(site);
    let started = Instant::now();
    thread::scope(|scope| {
        let client = scope.spawn(|| connector.connect_with(queue_pairs.clone()).unwrap());
        let incoming = listener.accept(PATIENCE).unwrap();
        drop(incoming.accept_with(queue_pairs.clone()).unwrap());
        drop(client.join().unwrap());
    });
    let took = started.elapsed();
    assert!(took >= attempt_delay && took < PATIENCE / 2, "{took:?}");
}

#[case]
fn the_furthest_failed_attempt_gives_the_error(site: &Site) {
    let port = free_port();
    let mut addresses = [(PLAIN, port), (site.v4, port)];
    for _ in 0..2 {
        let connector = Connector::new(addresses).deadline(PATIENCE);
        let error = connector.connect_with(QueuePairs::new(site)).unwrap_err();
        assert_eq!(error.stage(), Stage::Connect, "{error}");
        assert_eq!(error.address(), Some(site.v4(port)));
        assert!(error.is_rejected());
        addresses.reverse();
    }
}

#[case]
fn no_address_is_an_error(_: &Site) {
    let none: [(std::net::Ipv4Addr, u16); 0] = [];
    let error = Connector::new(none).resolve().unwrap_err();
    assert_eq!(error.stage(), Stage::LookUp);
    assert!(matches!(error.cause(), Cause::NoTarget), "{error}");
}

#[case]
fn durations_beyond_the_clock_never_expire(site: &Site) {
    let port = free_port();
    let addresses = [(site.v4, port), (site.v4, free_port())];
    let policy = RetryPolicy::attempts(2)
        .attempt_timeout(Duration::MAX)
        .initial_backoff(Duration::MAX)
        .max_backoff(Duration::MAX);
    let connector = Connector::new(addresses)
        .deadline(PATIENCE)
        .attempt_delay(Duration::MAX)
        .retry(policy);
    let error = connector.connect_with(QueuePairs::new(site)).unwrap_err();
    assert!(error.is_rejected() && error.attempts() == 1, "{error}");
}
