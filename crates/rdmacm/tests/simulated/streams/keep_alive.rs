//! Empty writes that detect a lost peer.

use std::io::{Error, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::ops::Range;
use std::time::Duration;

use libc::EIO;
use rdmacm::verbs::{CommandNumber, WcStatus};
use rdmacm::{CLOSE_DEADLINE, Cause, RdmaStream};
use rdmacm_sim::Fabric;
use tokio::io::AsyncReadExt;
use tokio::time::Instant;

use super::tasks::Tasks;
use super::{Hosts, SECOND, cause_of, small};

const INTERVAL: Duration = Duration::from_secs(10);
/// The interval, and the retries of one of the writes.
const DETECTION: Range<Duration> = INTERVAL..Duration::from_secs(40);

fn roce() -> Fabric {
    Fabric::roce(["client", "server"])
}

/// A keep-alive that nobody has acknowledged.
fn assert_is_lost(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    let cause = cause_of(error);
    let Cause::Request(request) = cause.cause() else {
        panic!("{error}");
    };
    assert_eq!(request.status, WcStatus::RETRY_EXC_ERR);
    let elapsed = cause.elapsed();
    assert!(DETECTION.contains(&elapsed), "{elapsed:?}");
}

/// While a call waits for bytes, and for good.
fn expect_loss(stream: &RdmaStream) {
    assert_is_lost(&{ stream }.read(&mut [0]).unwrap_err());
    for error in [
        { stream }.read(&mut [0]).unwrap_err(),
        { stream }.write(&[0]).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    }
}

#[test]
fn a_link_that_is_down_wakes_a_reader() {
    let hosts = Hosts::new(roce(), "rxe0");
    let (client, _server) = hosts.connect_with(small().keep_alive(INTERVAL));
    hosts.server.set_link_up(hosts.device, false);
    expect_loss(&client);
}

/// Without keep-alives. Seven retries would have no limit.
#[test]
fn writes_to_a_lost_peer_fail_on_both_sides() {
    let hosts = Hosts::new(roce(), "rxe0");
    let (client, server) = hosts.connect();
    hosts.server.set_link_up(hosts.device, false);
    for mut stream in [&client, &server] {
        stream.write_all(b"lost").unwrap();
        let error = stream.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        let cause = cause_of(&error);
        let Cause::Request(request) = cause.cause() else {
            panic!("{error}");
        };
        assert_eq!(request.status, WcStatus::RETRY_EXC_ERR);
        assert!(cause.elapsed() < DETECTION.end, "{error}");
    }
}

/// The client has asked for seven retries, which have no limit.
#[test]
fn the_accepting_side_notices_a_lost_peer() {
    let hosts = Hosts::with(roce(), "rxe0", small().keep_alive(INTERVAL));
    let (_client, server) = hosts.connect();
    hosts.server.set_link_up(hosts.device, false);
    expect_loss(&server);
}

#[tokio::test(start_paused = true)]
async fn a_link_that_is_down_wakes_a_task() {
    let tasks = Tasks::new(roce());
    let options = small().keep_alive(INTERVAL);
    let (connected, accepted) = tokio::join!(
        tasks.connector().connect_stream(options),
        tasks.listener.accept()
    );
    let (mut client, _server) = (connected.unwrap(), accepted.unwrap());
    tasks.server.set_link_up("rxe0", false);
    let began = Instant::now();
    let error = client.read(&mut [0]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    assert!(DETECTION.contains(&began.elapsed()), "{error}");
}

#[test]
fn a_peer_that_responds_is_left_alone() {
    for hosts in Hosts::each() {
        let (client, server) = hosts.connect_with(small().keep_alive(INTERVAL));
        client.set_read_timeout(Some(3600 * SECOND)).unwrap();
        let error = { &client }.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        // The peer has received nothing, and the stream still works.
        server.set_read_timeout(Some(SECOND)).unwrap();
        let error = { &server }.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        (&client).write_all(b"alive").unwrap();
        (&server).read_exact(&mut [0; 5]).unwrap();
    }
}

/// The peer has closed after all had arrived. Nothing is lost that anybody waits for.
#[test]
fn an_update_for_a_peer_that_has_closed_fails_without_harm() {
    let hosts = Hosts::new(roce(), "rxe0");
    let (client, mut server) = hosts.connect();
    // Half of the server's memory, after which it announces it again.
    (&client).write_all(&[7; 500]).unwrap();
    client.close(CLOSE_DEADLINE).unwrap();
    hosts.server.set_link_up(hosts.device, false);
    // All that was written, and not the end that follows.
    assert_eq!(server.read(&mut [0; 500]).unwrap(), 500);
    assert_eq!(server.read(&mut [0; 500]).unwrap(), 0);
    hosts.fabric.advance(DETECTION.end);
    // Somebody reads the events of the node: the peer has disconnected as well.
    hosts.listener.set_nonblocking(true).unwrap();
    let error = hosts.listener.accept().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
    server.shutdown(Shutdown::Both).unwrap();
    assert!(server.take_error().unwrap().is_none());
}

/// Rather than that bytes were not acknowledged in time.
#[test]
fn a_close_says_why_the_connection_has_failed_before_its_deadline() {
    let hosts = Hosts::new(roce(), "rxe0");
    for is_known in [false, true] {
        let (client, _server) = hosts.connect_with(small().keep_alive(INTERVAL));
        hosts.server.set_link_up(hosts.device, false);
        (&client).write_all(&[1; 100]).unwrap();
        if is_known {
            (&client).read(&mut [0]).unwrap_err();
        }
        let error = client.close(3600 * SECOND).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        let cause = cause_of(&error).cause();
        assert!(matches!(cause, Cause::Request(_)), "{error}");
        hosts.server.set_link_up(hosts.device, true);
    }
}

/// What the connecting side has done before it waits.
#[derive(Clone, Copy, Debug)]
enum Done {
    Nothing,
    /// The peer has answered, and memory was reserved for what is to be written.
    Reserved,
    /// The peer has answered, and something was written since.
    Written,
}

/// The connecting side sends empty writes at first, as siw's peer may not read before more arrives.
#[test]
fn a_peer_that_has_answered_is_not_woken_up() {
    let fabric = Fabric::iwarp(["client", "server"]);
    let client_host = fabric.find_host("client").unwrap();
    let hosts = Hosts::new(fabric, "siw0");
    for done in [Done::Nothing, Done::Reserved, Done::Written] {
        let (mut client, mut server) = hosts.connect();
        if !matches!(done, Done::Nothing) {
            // The peer may have sent a message of the protocol before, and a write after that would
            // be one since it has answered.
            server.write_all(&[2]).unwrap();
            client.read_exact(&mut [0]).unwrap();
            drop(client.reserve(1).unwrap());
        }
        if let Done::Written = done {
            client.write_all(&[3]).unwrap();
            server.read_exact(&mut [0]).unwrap();
        }
        // The next write that is posted fails.
        client_host.fail_next(CommandNumber::POST_SEND, 1, EIO);
        client.set_read_timeout(Some(3600 * SECOND)).unwrap();
        let error = client.read(&mut [0]).unwrap_err();
        let is_posted = error.kind() != ErrorKind::TimedOut;
        assert_eq!(
            is_posted,
            !matches!(done, Done::Written),
            "{done:?}: {error}"
        );
    }
}
