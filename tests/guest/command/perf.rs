//! `rdmacm perf` with itself as the peer.

use rdmacm::{Connector, Listener};
use rdmacm_core::{ConnParam, EventKind, IdHandle};
use rdmacm_tests::{PATIENCE, Site};
use serde_json::Value;

use super::{PATIENT, check_failure};
use crate::c_tools::tool::Tool;
use rdmacm_tests_macros::case;

pub(super) fn server(site: &Site, arguments: &[&str]) -> (Tool, String) {
    super::server("perf", site, arguments)
}

pub(super) fn client(site: &Site, port: &str, arguments: &[&str]) -> Tool {
    let address = site.v4.to_string();
    let common = ["perf", &address, "--port", port];
    Tool::rdmacm(&[&common, &PATIENT[..], arguments].concat())
}

/// Runs a client, which must succeed, and returns its output.
fn measured(site: &Site, test: &str, arguments: &[&str]) -> Value {
    let (server, port) = server(site, &["--json"]);
    let common = ["--test", test, "--json"];
    let ended = client(site, &port, &[&common, arguments].concat());
    // A polling process shares the processors with the kernel threads that carry the
    // data.
    let ended = ended.finish_within(8 * PATIENCE);
    ended.assert_success();
    let document = ended.document();
    assert_eq!(document["role"], "client");
    assert_eq!(document["node"], site.v4.to_string());
    assert_eq!(document["peer"], format!("{}:{port}", site.v4));
    assert_eq!(document["device"], site.device);
    assert_eq!(document["test"], test);
    assert_eq!(document["interrupted"], false);
    assert_eq!(document["error"], Value::Null);
    let ended = server.finish();
    ended.assert_success();
    let at_the_end = ended.document();
    assert_eq!(at_the_end["peers"], 1);
    assert_eq!(at_the_end["failed"], 0);
    assert_eq!(at_the_end["error"], Value::Null);
    document
}

fn check_rate(document: &Value, messages: u64, size: u32) {
    assert_eq!(document["messages"], messages);
    assert_eq!(document["size"], size);
    let number = |name: &str| document[name].as_f64().unwrap();
    let (rate, bytes) = (number("messages_per_second"), number("bytes_per_second"));
    assert!((rate * f64::from(size) - bytes).abs() < 1.0, "{document}");
    let messages = rate * number("elapsed_ns") / 1e9;
    assert!((messages - number("messages")).abs() < 0.01, "{document}");
}

#[case]
fn bandwidth_is_measured(site: &Site) {
    for test in ["send-bw", "write-bw", "read-bw"] {
        for (size, depth, more) in [(1000, 1, &[][..]), (4097, 7, &["--poll"])] {
            let (bytes, at_once) = (size.to_string(), depth.to_string());
            let arguments = ["--count", "50", "--size", &bytes, "--depth", &at_once];
            let document = measured(site, test, &[&arguments, more].concat());
            check_rate(&document, 50, size);
            assert_eq!(document["depth"], depth);
            assert_eq!(document["polled"], !more.is_empty());
            assert_eq!(document["latency_ns"], Value::Null);
        }
    }
}

#[case]
fn streams_are_measured(site: &Site) {
    for size in [1, 1000, 300_001] {
        let arguments = ["--count", "10", "--size", &size.to_string()];
        let document = measured(site, "stream-bw", &arguments);
        check_rate(&document, 10, size);
        assert_eq!(document["latency_ns"], Value::Null);
        let document = measured(site, "stream-lat", &arguments);
        check_rate(&document, 10, size);
        check_latency(&document);
    }
}

fn check_latency(document: &Value) {
    let latency = &document["latency_ns"];
    let percentiles = ["min", "p50", "p90", "p99", "p99.9", "max"];
    let values = percentiles.map(|name| latency[name].as_u64().unwrap());
    assert!(values.is_sorted() && values[0] > 0, "{latency}");
}

#[case]
fn latency_is_measured(site: &Site) {
    for test in ["send-lat", "write-lat", "read-lat"] {
        for more in [&[][..], &["--poll", "--size", "1"]] {
            let document = measured(site, test, &[&["--count", "150"], more].concat());
            let bytes = if more.is_empty() { 64 } else { 1 };
            check_rate(&document, 150, bytes);
            assert_eq!(document["depth"], 1);
            check_latency(&document);
        }
    }
}

/// In Linux 6.1 siw counts registered memory against the limit of locked memory, also
/// for root.
#[case]
fn large_messages(site: &Site) {
    let arguments = ["--count", "1", "--size", "3000000", "--depth", "2"];
    let (server, port) = server(site, &[]);
    let client = client(
        site,
        &port,
        &[&["--test", "write-bw"], &arguments[..]].concat(),
    );
    client.finish_within(8 * PATIENCE).assert_success();
    server.finish().assert_success();
}

#[case]
fn the_duration_option_is_obeyed(site: &Site) {
    let (server, port) = server(site, &["--persistent"]);
    // Longer than by default.
    let ended = client(site, &port, &["--duration", "2500", "--json"]).finish();
    ended.assert_success();
    assert!(ended.document()["elapsed_ns"].as_u64() >= Some(2_500_000_000));
    let ended = client(site, &port, &["--duration", "300"]).finish();
    ended.assert_success();
    ended.assert_contains("send-bw, 65536 bytes, 16 at once");
    ended.assert_contains(" Gbit/s, ");
    let arguments = ["--duration", "300", "--test", "read-lat"];
    let ended = client(site, &port, &arguments).finish();
    ended.assert_success();
    ended.assert_contains("read-lat, 64 bytes, request and response");
    ended.assert_contains("P99.9");
    ended.assert_contains("##");
    server.interrupt();
    let ended = server.finish();
    ended.assert_success();
    ended.assert_contains(": read-lat, 64 bytes, 1 at once");
}

/// The peer has receive requests for all messages (24 to warm up, 232, and the end
/// mark), so the client can finish while the server is stopped. When the server
/// continues, it finds the messages, the end mark and the disconnect at once, and more
/// messages than it takes at a time.
#[case]
fn a_slow_server_sees_its_client_finish(site: &Site) {
    let (mut server, port) = server(site, &[]);
    let arguments = ["--test", "send-bw", "--size", "64", "--depth", "128"];
    let client = client(site, &port, &[&arguments[..], &["--count", "232"]].concat());
    server.wait_for("rdmacm: ");
    server.suspend();
    client.finish().assert_success();
    server.resume();
    let ended = server.finish();
    ended.assert_success();
    ended.assert_contains(": send-bw, 64 bytes, 128 at once");
}

#[case]
fn a_persistent_server_serves_peers_at_once(site: &Site) {
    let (server, port) = server(site, &["--persistent", "--json"]);
    let clients = ["send-bw", "send-lat", "write-lat"].map(|test| {
        client(
            site,
            &port,
            &["--test", test, "--count", "30", "--size", "64"],
        )
    });
    for client in clients {
        client.finish().assert_success();
    }
    server.interrupt();
    let ended = server.finish();
    ended.assert_success();
    let document = ended.document();
    assert_eq!(document["peers"], 3);
    assert_eq!(document["interrupted"], true);
}

#[case]
fn foreign_parameters_are_rejected_with_a_message(site: &Site) {
    for (data, words) in [
        (
            &b"hello, version 1"[..],
            "the other side is not rdmacm perf",
        ),
        (b"rdmp\x01", "by version 1"),
        (b"rdmp\x02\0\0\0\xff\0\0\0\0\0\0\x01", "more than is served"),
    ] {
        let (server, port) = server(site, &[]);
        let param = ConnParam::new().private_data(data).unwrap();
        let connector = Connector::new(site.v4(port.parse().unwrap())).param(param);
        let make = |_: &IdHandle| Ok(site.queue_pair());
        let error = connector.deadline(PATIENCE).connect_with(make).unwrap_err();
        assert!(error.is_rejected(), "{error}");
        let text = String::from_utf8_lossy(error.private_data()).into_owned();
        assert!(text.contains(words), "{text}");
        check_failure(&server.finish(), words);
    }
}

#[case]
fn a_foreign_server_is_reported(site: &Site) {
    let (server, port) = super::server("ping", site, &[]);
    let ended = client(site, &port, &[]).finish();
    check_failure(&ended, "the other side is not rdmacm perf");
    server.finish().assert_success();
}

#[case]
fn an_interrupted_client_disconnects(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port().to_string();
    let client = client(site, &port, &["--json"]);
    let incoming = listener.accept(PATIENCE).unwrap();
    // Like a server that agrees on parameters and sends nothing more.
    let agreed = ConnParam::new().private_data(b"rdmp\x02").unwrap();
    let queue_pair = site.queue_pair();
    incoming.id().with_queue_pair(&queue_pair).init().unwrap();
    let room = queue_pair.protection_domain().allocate(16).unwrap();
    queue_pair.post_receive(room).unwrap();
    let connection = incoming.param(agreed).accept_on(queue_pair).unwrap();
    // It has sent the address of its memory, so it is measuring.
    let receives = connection.queue_pair().recv_cq();
    let memory = receives.next(PATIENCE).unwrap().unwrap();
    assert_eq!(memory.result().unwrap().bytes, 16);
    client.interrupt();
    let end = connection.closed(PATIENCE).unwrap();
    assert_eq!(end.kind(), EventKind::Disconnected);
    let ended = client.finish();
    assert_eq!(ended.status.code(), Some(1));
    let document = ended.document();
    assert_eq!(document["interrupted"], true);
    assert_eq!(document["error"], "interrupted after 0 messages");
}
