//! The clients of a persistent server: their maximal number, and foreign ones.

use rdmacm::{CLOSE_DEADLINE, CmConnection, Connector};
use rdmacm_core::{ConnParam, IdHandle};
use rdmacm_tests::{PATIENCE, Site};
use rdmacm_verbs::QueuePair;

use super::{check_failure, perf, ping};
use crate::c_tools::tool::Tool;
use rdmacm_tests_macros::case;

const ONE_AT_ONCE: [&str; 3] = ["--persistent", "--max-clients", "1"];
const FULL: &str = "the server is full: it serves 1 at once";

/// Waits until the server has reported the end of the connection of a peer.
fn disconnect(connection: &CmConnection<QueuePair>, server: &mut Tool) {
    let address = connection.local_addr().unwrap();
    connection.close(CLOSE_DEADLINE).unwrap();
    server.wait_for(&format!("{address}: "));
}

#[case]
fn a_full_ping_server_rejects_with_a_message(site: &Site) {
    let (mut server, port) = ping::server(site, &ONE_AT_ONCE);
    let first = ping::connect(site, &port);
    check_failure(&ping::client(site, &port, &[]).finish(), FULL);
    disconnect(&first, &mut server);
    let ended = ping::client(site, &port, &["--count", "3"]).finish();
    ended.assert_success();
    server.interrupt();
    let ended = server.finish();
    ended.assert_success();
    ended.assert_contains(": rejected: the server is full");
}

#[case]
fn a_full_perf_server_rejects_with_a_message(site: &Site) {
    let (mut server, port) = perf::server(site, &ONE_AT_ONCE);
    let first = agreed_with(site, &port);
    check_failure(&perf::client(site, &port, &[]).finish(), FULL);
    disconnect(&first, &mut server);
    let ended = perf::client(site, &port, &["--count", "3"]).finish();
    ended.assert_success();
    server.interrupt();
    // The first client left without a measurement.
    check_failure(&server.finish(), "disconnected before it had finished");
}

/// A client of perf that has agreed on parameters and does nothing.
fn agreed_with(site: &Site, port: &str) -> CmConnection<QueuePair> {
    // Reads of one byte, one at a time.
    let terms = b"rdmp\x02\x05\0\0\0\0\0\x01\0\0\0\x01";
    let param = ConnParam::new().private_data(terms).unwrap();
    let connector = Connector::new(site.v4(port.parse().unwrap())).param(param);
    let make = |_: &IdHandle| Ok(site.queue_pair());
    connector.deadline(PATIENCE).connect_with(make).unwrap()
}

/// Connects a client of each kind to a server of the other kind.
#[case]
fn foreign_clients_do_not_fail_a_persistent_server(site: &Site) {
    let (server, port) = ping::server(site, &["--persistent", "--json"]);
    let ended = perf::client(site, &port, &[]).finish();
    check_failure(&ended, "the other side is not rdmacm perf");
    server.interrupt();
    let ended = server.finish();
    ended.assert_success();
    assert_eq!(ended.document()["failed"], 0);

    let (server, port) = perf::server(site, &["--persistent", "--json"]);
    let ended = ping::client(site, &port, &[]).finish();
    check_failure(&ended, "the other side is not rdmacm perf");
    server.interrupt();
    let ended = server.finish();
    ended.assert_success();
    let document = ended.document();
    assert_eq!(document["peers"], 0);
    assert_eq!(document["failed"], 0);
    assert_eq!(document["rejected"], 1);
    assert_eq!(document["error"], serde_json::Value::Null);
}
