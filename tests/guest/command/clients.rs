//! The clients of a persistent server: their maximal number, and foreign ones.

use rdmacm::{CmConnection, Connector};
use rdmacm_core::{ConnParam, IdHandle};
use rdmacm_tests::{PATIENCE, Site, Soft};
use rdmacm_verbs::{QueuePair, SendOperation, SendRequest};

use super::{check_failure, perf, ping};
use crate::c_tools::tool::Tool;
use crate::packet_delay::hold_back_first_messages;
use rdmacm_tests_macros::case;

const ONE_AT_ONCE: [&str; 3] = ["--persistent", "--max-clients", "1"];
const FULL: &str = "the server is full: it serves 1 at once";

/// Waits until the server has reported the end of the connection of a peer.
fn disconnect(connection: &CmConnection<QueuePair>, server: &mut Tool) {
    let address = connection.local_addr().unwrap();
    connection.close(PATIENCE).unwrap();
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

/// A message that describes one byte of memory.
const MEMORY: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

#[case(waiting)]
fn a_silent_client_of_perf_has_failed(site: &Site) {
    let (server, port) = perf::server(site, &[]);
    let client = agreed_with(site, &port);
    let ended = server.finish_within(2 * PATIENCE);
    check_failure(&ended, "the peer has been silent for 30.00 s");
    drop(client);
}

/// The device of a client's host does not answer any more, as if the host were dead. On siw the
/// connection ends with the queue pair.
#[case(waiting)]
fn a_dead_client_of_perf_has_failed(site: &Site) {
    let (mut server, port) = perf::server(site, &[]);
    hold_back_first_messages(site, &port);
    let client = agreed_with(site, &port);
    let queue_pair = client.queue_pair();
    let domain = queue_pair.protection_domain();
    let buffer = domain.allocate(MEMORY.len()).unwrap();
    queue_pair.post_receive(buffer).unwrap();
    let memory = domain.register(&MEMORY[..]).unwrap();
    let request = SendRequest::new(SendOperation::Send, memory);
    queue_pair.post_send(request).unwrap();
    // The server has nothing to send after its answer.
    let receives = queue_pair.recv_cq();
    let answer = receives.next(PATIENCE).unwrap().unwrap();
    assert_eq!(answer.result().unwrap().bytes, 16);
    server.wait_for(&format!("rdmacm: {}:", site.v4));
    client
        .id()
        .with_queue_pair(queue_pair)
        .move_to_error()
        .unwrap();
    let ended = server.finish_within(2 * PATIENCE);
    check_failure(&ended, " before it had finished");
    if site.soft == Soft::Rxe {
        ended.assert_contains("the peer did not acknowledge it");
    }
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
