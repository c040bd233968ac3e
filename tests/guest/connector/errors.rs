//! Error texts, which are equal on both devices.

use std::io;
use std::thread;

use rdmacm::core::{EventKind, IdHandle, QpState};
use rdmacm::{Cause, Connector, Error, Listener, Stage};
use rdmacm_tests::{PATIENCE, RefusingQueuePair, SECOND, Site, Soft, UNROUTABLE, free_port};

use crate::messages::{Pair, ending};
use crate::queue_pairs::QueuePairs;
use rdmacm_tests_macros::case;

/// The error's text contains its whole chain once.
fn assert_complete(error: &Error) {
    assert!(std::error::Error::source(error).is_none(), "{error:?}");
    let words = error.to_string();
    let cause = error.cause().to_string();
    assert_eq!(words.matches(&cause).count(), 1, "{words}");
    let inner = std::error::Error::source(error.cause());
    assert!(inner.is_none(), "{error:?}");
}

/// The category: refused, disconnected, unreachable or timed out.
fn assert_is(error: Error, is: [bool; 4], kind: io::ErrorKind) {
    assert_complete(&error);
    let words = error.to_string();
    let reported = [
        error.is_rejected(),
        error.is_closed(),
        error.is_unreachable(),
        error.is_timeout(),
    ];
    assert_eq!(reported, is, "{words}");
    let wrapped = io::Error::from(error);
    assert_eq!(wrapped.kind(), kind, "{words}");
    assert_eq!(wrapped.to_string(), words);
    assert!(std::error::Error::source(&wrapped).is_none(), "{words}");
}

const REJECTED: [bool; 4] = [true, false, false, false];
const ENDED: [bool; 4] = [false, true, false, false];
const UNREACHABLE: [bool; 4] = [false, false, true, false];
const TIMEOUT: [bool; 4] = [false, false, false, true];
const UNREACHABLE_IN_TIME: [bool; 4] = [false, false, true, true];

#[case]
fn no_listener(site: &Site) {
    let connector = Connector::new(site.v4(free_port())).deadline(PATIENCE);
    let error = connector.connect().unwrap_err();
    assert_is(error, REJECTED, io::ErrorKind::ConnectionRefused);
}

#[case]
fn the_peer_rejects(site: &Site) {
    for words in [&b""[..], b"not you", b"\0\0"] {
        let listener = Listener::bind(site.v4(0)).unwrap();
        let connector = Connector::new(listener.local_addr()).deadline(PATIENCE);
        let error = thread::scope(|scope| {
            let client = scope.spawn(|| connector.connect().unwrap_err());
            let incoming = listener.accept(PATIENCE).unwrap();
            incoming.reject(words).unwrap();
            client.join().unwrap()
        });
        match (site.soft, words) {
            (_, b"") => assert_eq!(error.private_data(), b"", "{error}"),
            (Soft::Rxe, b"not you") => {
                assert_eq!(error.private_data().len(), 148);
                assert!(error.private_data().starts_with(words));
            }
            // As if the peer had not reported a reason.
            (Soft::Rxe, _) => assert_eq!(error.private_data(), b""),
            // The disconnect may arrive first.
            (Soft::Siw, _) => assert!([b"", words].contains(&error.private_data())),
        }
        assert_is(error, REJECTED, io::ErrorKind::ConnectionRefused);
    }
}

#[case]
fn no_route(_: &Site) {
    let connector = Connector::new((UNROUTABLE, 7)).deadline(PATIENCE);
    let error = connector.connect().unwrap_err();
    assert_is(error, UNREACHABLE, io::ErrorKind::NetworkUnreachable);
}

/// The kernel's timeout for the neighbour is the caller's deadline: either may pass
/// first.
#[case]
fn an_unused_address(site: &Site) {
    let [first, second, third, _] = site.v4.octets();
    let nobody = std::net::Ipv4Addr::new(first, second, third, 99);
    let connector = Connector::new((nobody, 7)).deadline(SECOND / 10);
    let error = connector.connect().unwrap_err();
    assert_eq!(error.stage(), Stage::ResolveAddress, "{error}");
    let is = match error.cause() {
        Cause::Deadline => TIMEOUT,
        _ => UNREACHABLE_IN_TIME,
    };
    assert_is(error, is, io::ErrorKind::TimedOut);
}

#[case(quiet)]
fn the_peer_does_not_answer_in_time(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let connector = Connector::new(listener.local_addr()).deadline(4 * SECOND);
    let error = connector.connect().unwrap_err();
    assert_eq!(error.stage(), Stage::Connect, "{error}");
    assert_is(error, TIMEOUT, io::ErrorKind::TimedOut);
}

#[case]
fn the_peer_disconnects(site: &Site) {
    let Pair { client, server } = Pair::new(site);
    drop(server);
    assert!(client.receive().unwrap().is_none());
    let error = client.send(b"more").unwrap_err();
    assert_eq!(ending(&error), EventKind::Disconnected);
    assert_is(error, ENDED, io::ErrorKind::ConnectionReset);
    let ended = client.closed(PATIENCE).unwrap();
    assert_eq!((ended.failure(), ended.failed_request()), (None, None));
    let error = client.send(b"anyone?").unwrap_err();
    assert_is(error, ENDED, io::ErrorKind::ConnectionReset);
}

#[case]
fn a_queue_pair_error_is_quoted(site: &Site) {
    // On iWARP the kernel moves a queue pair.
    let (state, step, words) = match site.soft {
        Soft::Rxe => (QpState::RTR, Stage::Connect, "connect to "),
        Soft::Siw => (QpState::INIT, Stage::QueuePair, "create a queue pair for "),
    };
    let listener = Listener::bind(site.v4(0)).unwrap();
    let connector = Connector::new(listener.local_addr()).deadline(PATIENCE);
    let queue_pairs = QueuePairs::new(site);
    let error = thread::scope(|scope| {
        let serving = scope.spawn(|| {
            if site.soft == Soft::Rxe {
                let incoming = listener.accept(PATIENCE).unwrap();
                incoming.accept().unwrap_err();
            }
        });
        let made = |_: &IdHandle| Ok(RefusingQueuePair::new(queue_pairs.one(), state));
        let error = connector.connect_with(made).unwrap_err();
        serving.join().unwrap();
        error
    });
    assert_eq!(error.stage(), step, "{error}");
    let text = error.to_string();
    assert!(text.starts_with(words), "{text}");
    assert!(text.contains("the firmware refused"), "{text}");
    assert_is(error, [false; 4], io::ErrorKind::PermissionDenied);
}
