//! `rdmacm ping` with itself as the peer.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::Signal;
use nix::unistd::{pipe2, write};
use rdmacm::{CmConnection, Connector, Listener};
use rdmacm_core::{EventKind, IdHandle};
use rdmacm_tests::{PATIENCE, Site, free_port};
use rdmacm_verbs::{QpCaps, QueuePair, SendOperation, SendRequest};
use serde_json::{Value, json};

use super::{PATIENT, check_failure, rdmacm};
use crate::c_tools::tool::{Ended, Tool};
use crate::child;
use crate::packet_delay::hold_back_first_messages;
use rdmacm_tests_macros::case;

/// A listening server, and its port.
pub(crate) fn server(site: &Site, arguments: &[&str]) -> (Tool, String) {
    super::server("ping", site, arguments)
}

/// A client of the server on this port, without pauses.
pub(crate) fn client(site: &Site, port: &str, arguments: &[&str]) -> Tool {
    let address = site.v4.to_string();
    let common = ["ping", &address, "--port", port, "--interval", "0"];
    Tool::rdmacm(&[&common, &PATIENT[..], arguments].concat())
}

#[case]
fn every_ping_comes_back(site: &Site) {
    let (server, port) = server(site, &[]);
    let ended = client(site, &port, &["--count", "20", "--validate"]).finish();
    ended.assert_success();
    let via = format!("via {}: 20 pings of 64 bytes in ", site.device);
    ended.assert_contains(&via);
    ended.assert_contains("P99.9");
    let ended = server.finish();
    ended.assert_success();
    ended.assert_contains(": 20 pings");
}

/// It serves its client all the same.
#[case]
fn a_server_whose_result_is_not_written_has_failed(site: &Site) {
    let (address, port) = (site.v4.to_string(), free_port().to_string());
    let arguments = ["ping", "--listen", &address, "--port", &port];
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut server = Tool::rdmacm_on(&arguments, Stdio::null(), full);
    server.wait_for("rdmacm: listening on ");
    client(site, &port, &["--count", "3"])
        .finish()
        .assert_success();
    check_failure(&server.finish(), "standard output: No space left");
}

/// The reader of its output has stopped, as `less` does.
#[case]
fn a_server_whose_output_is_not_read_serves_its_clients_and_can_be_interrupted(site: &Site) {
    let (address, port) = (site.v4.to_string(), free_port().to_string());
    let arguments = [
        "ping",
        "--listen",
        &address,
        "--port",
        &port,
        "--persistent",
    ];
    let (unread, full) = full_pipe();
    let mut server = Tool::rdmacm_on(&arguments, Stdio::null(), full);
    server.wait_for("rdmacm: listening on ");
    let first = connect(site, &port);
    let second = client(site, &port, &["--count", "3"]);
    second.finish().assert_success();
    first.close(PATIENCE).unwrap();
    let ended = server.interrupt_until_ended();
    assert_eq!(ended.status.signal(), Some(Signal::SIGINT as i32));
    drop(unread);
}

/// Both ends of a pipe that has no room.
fn full_pipe() -> (OwnedFd, OwnedFd) {
    let (reader, writer) = pipe2(OFlag::O_CLOEXEC).unwrap();
    let room = fcntl(&writer, FcntlArg::F_GETPIPE_SZ).unwrap();
    let bytes = vec![b' '; room.try_into().unwrap()];
    assert_eq!(write(&writer, &bytes).unwrap(), bytes.len());
    (reader, writer)
}

#[case]
fn json_of_each_side(site: &Site) {
    let (server, port) = server(site, &["--json"]);
    let arguments = ["--count", "10", "--validate", "--json"];
    let ended = client(site, &port, &arguments).finish();
    ended.assert_success();
    let document = ended.document();
    assert_eq!(document["role"], "client");
    assert_eq!(document["node"], site.v4.to_string());
    assert_eq!(document["peer"], format!("{}:{port}", site.v4));
    let source = document["source"].as_str().unwrap();
    assert!(source.starts_with(&format!("{}:", site.v4)), "{source}");
    assert_eq!(document["device"], site.device);
    assert_eq!(document["size"], 64);
    assert_eq!(document["validated"], true);
    assert_eq!(document["pings"], 10);
    assert_eq!(document["interrupted"], false);
    assert_eq!(document["error"], Value::Null);
    let latency = &document["latency_ns"];
    let percentiles = ["min", "p50", "p90", "p99", "p99.9", "max"];
    let values = percentiles.map(|name| latency[name].as_u64().unwrap());
    assert!(values.is_sorted() && values[0] > 0, "{latency}");
    let mean = latency["mean"].as_u64().unwrap();
    assert!((values[0]..=values[5]).contains(&mean), "{latency}");
    assert!(document["elapsed_ns"].as_u64().unwrap() >= 10 * values[0]);
    let ended = server.finish();
    ended.assert_success();
    let expected = json!({
        "role": "server",
        "peers": 1,
        "pings": 10,
        "failed": 0,
        "rejected": 0,
        "interrupted": false,
        "error": null,
    });
    assert_eq!(ended.document(), expected);
}

#[case]
fn every_size_comes_back(site: &Site) {
    let (server, port) = server(site, &["--persistent"]);
    for size in ["23", "4096", "4097", "65535", "300000"] {
        let arguments = ["--count", "3", "--validate", "--size", size];
        client(site, &port, &arguments).finish().assert_success();
    }
    server.interrupt();
    server.finish().assert_success();
}

#[case]
fn a_server_on_all_addresses(site: &Site) {
    let port = free_port().to_string();
    let mut server = Tool::rdmacm(&["ping", "--listen", "--port", &port, "--persistent"]);
    server.wait_for(&format!("rdmacm: listening on [::]:{port}"));
    for ip in site.ips() {
        let ip = ip.to_string();
        let arguments = ["ping", &ip, "--port", &port, "--count", "1", "--validate"];
        let finished = rdmacm(&[&arguments[..], &PATIENT].concat());
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    }
    server.interrupt();
    server.finish().assert_success();
}

#[case]
fn a_persistent_server_serves_peers_at_once(site: &Site) {
    let (server, port) = server(site, &["--persistent", "--json"]);
    let arguments = ["--count", "30", "--validate"];
    let clients = [(); 3].map(|()| client(site, &port, &arguments));
    let ended = clients.map(Tool::finish);
    ended.iter().for_each(Ended::assert_success);
    server.interrupt();
    let ended = server.finish();
    ended.assert_success();
    let document = ended.document();
    assert_eq!(document["peers"], 3);
    assert_eq!(document["pings"], 90);
    assert_eq!(document["interrupted"], true);
}

#[case]
fn an_interrupted_server_disconnects(site: &Site) {
    let (server, port) = server(site, &["--json"]);
    let connection = connect(site, &port);
    server.interrupt();
    let end = connection.closed(PATIENCE).unwrap();
    // The client may not know yet that the connection is established.
    let parted = [EventKind::Disconnected, EventKind::Rejected];
    assert!(parted.contains(&end.kind()), "{end}");
    let ended = server.finish();
    ended.assert_success();
    assert_eq!(ended.document()["interrupted"], true);
}

#[case]
fn a_peer_that_disconnects_early_has_failed(site: &Site) {
    let (server, port) = server(site, &["--count", "5"]);
    let ended = client(site, &port, &["--count", "2"]).finish();
    ended.assert_success();
    let ended = server.finish();
    check_failure(&ended, "the peer disconnected before 5 pings were made");
    ended.assert_contains(": 2 pings, then ");
}

#[case(waiting)]
fn a_server_with_too_few_pings_disconnects(site: &Site) {
    let (server, port) = server(site, &["--count", "2"]);
    let ended = client(site, &port, &[]).finish();
    check_failure(&ended, "the peer disconnected after 2 pings");
    server.finish().assert_success();
}

/// A client of this process, which has received the first message of its first ping and interrupts
/// the client.
fn interrupt_first_ping(site: &Site) -> (Tool, CmConnection<QueuePair>) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port().to_string();
    let client = client(site, &port, &["--json"]);
    let incoming = listener.accept(PATIENCE).unwrap();
    let queue_pair = site.queue_pair_with(QpCaps {
        max_inline_data: 16,
        ..QpCaps::default()
    });
    incoming.id().with_queue_pair(&queue_pair).init().unwrap();
    let memory = queue_pair.protection_domain().allocate(32).unwrap();
    for room in memory.into_chunks(16) {
        queue_pair.post_receive(room).unwrap();
    }
    let connection = incoming.accept_on(queue_pair).unwrap();
    expect_message(&connection);
    client.interrupt_and_wait();
    (client, connection)
}

fn expect_message(connection: &CmConnection<QueuePair>) {
    let queue = connection.queue_pair().recv_cq();
    let message = queue.next(PATIENCE).unwrap().unwrap();
    assert_eq!(message.result().unwrap().bytes, 16);
}

fn go_ahead(connection: &CmConnection<QueuePair>) {
    let go_ahead = SendRequest::inline(SendOperation::Send, &[0; 16]);
    connection.queue_pair().post_send(go_ahead).unwrap();
}

/// Its server would take it for one that has failed.
#[case]
fn an_interrupted_client_completes_the_ping_in_progress(site: &Site) {
    let (client, connection) = interrupt_first_ping(site);
    go_ahead(&connection);
    expect_message(&connection);
    go_ahead(&connection);
    let end = connection.closed(PATIENCE).unwrap();
    assert_eq!(end.kind(), EventKind::Disconnected);
    let ended = client.finish();
    ended.assert_success();
    let document = ended.document();
    assert_eq!(
        (&document["pings"], &document["interrupted"]),
        (&json!(1), &json!(true))
    );
}

#[case]
fn an_interrupted_client_says_so_though_its_ping_fails(site: &Site) {
    let (client, connection) = interrupt_first_ping(site);
    drop(connection);
    let ended = client.finish();
    assert_eq!(ended.status.code(), Some(1));
    let document = ended.document();
    assert!(document["error"].is_string(), "{document}");
    assert_eq!(
        (&document["pings"], &document["interrupted"]),
        (&json!(0), &json!(true))
    );
}

/// Only the connection manager's node exists, not those of devices.
#[case]
fn an_unopenable_device_is_not_listened_on(site: &Site) {
    child::run_at("command_without_verbs_nodes", site);
}

/// In a child.
pub(crate) fn without_verbs_nodes() {
    let site = child::site();
    child::hide_verbs_nodes();
    let address = site.v4.to_string();
    let wildcard = ["ping", "--listen", "--port", "0"];
    let bound = ["perf", "--listen", &address, "--port", "0"];
    for arguments in [&wildcard[..], &bound] {
        let ended = Tool::rdmacm(arguments).finish();
        check_failure(&ended, "rdmacm: open /dev/infiniband/uverbs");
        ended.assert_contains("ENOENT");
        let listens = |line: &String| line.contains("listening on");
        assert!(
            !ended.printed().iter().any(listens),
            "{:?}",
            ended.printed()
        );
    }
}

#[case(waiting)]
fn a_client_interrupted_while_connecting(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port().to_string();
    let address = site.v4.to_string();
    for task in ["ping", "perf"] {
        let arguments = [task, &address, "--port", &port, "--json"];
        let client = Tool::rdmacm(&[&arguments[..], &PATIENT].concat());
        // Its request is not answered.
        let _incoming = listener.accept(PATIENCE).unwrap();
        client.interrupt();
        let ended = client.finish();
        assert_eq!(ended.status.code(), Some(1));
        let document = ended.document();
        assert_eq!(document["interrupted"], true, "{document}");
        let error = "interrupted before there was a connection";
        assert_eq!(document["error"], error);
    }
}

/// A connection on which the test sends the data.
pub(super) fn connect(site: &Site, port: &str) -> CmConnection<QueuePair> {
    hold_back_first_messages(site, port);
    let connector = Connector::new(site.v4(port.parse().unwrap())).deadline(PATIENCE);
    let make = |_: &IdHandle| Ok(site.queue_pair());
    connector.connect_with(make).unwrap()
}

fn send(connection: &CmConnection<QueuePair>, bytes: &[u8]) {
    let queue_pair = connection.queue_pair();
    let memory = queue_pair.protection_domain().register(bytes).unwrap();
    let request = SendRequest::new(SendOperation::Send, memory);
    queue_pair.post_send(request).unwrap();
}

#[case(waiting)]
fn a_ping_beyond_the_limit_is_rejected_with_a_message(site: &Site) {
    let (server, port) = server(site, &[]);
    let connection = connect(site, &port);
    // An address, a key, and a length of 16 MiB and one byte.
    send(
        &connection,
        &[0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 1, 1, 0, 0, 1],
    );
    let ended = server.finish();
    check_failure(
        &ended,
        "pings have 16777217 bytes, and 1 to 16777216 are served",
    );
    connection.close(PATIENCE).unwrap();
}

#[case(waiting)]
fn a_message_of_another_length_is_reported(site: &Site) {
    let (server, port) = server(site, &[]);
    let connection = connect(site, &port);
    send(&connection, b"short");
    let ended = server.finish();
    check_failure(&ended, "a message of 5 bytes instead of 16");
    connection.close(PATIENCE).unwrap();
}

#[case]
fn no_server_to_ping(site: &Site) {
    let ended = client(site, &free_port().to_string(), &[]).finish();
    check_failure(&ended, &format!("connect to {}:", site.v4));
}

#[case]
fn no_address_to_listen_on(_: &Site) {
    let finished = rdmacm(&["ping", "--listen", "203.0.113.1"]);
    assert_eq!(finished.code, Some(1));
    assert!(
        finished.stderr.contains("EADDRNOTAVAIL"),
        "{}",
        finished.stderr
    );
}
