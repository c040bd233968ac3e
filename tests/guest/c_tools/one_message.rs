//! `rdma_client` and `rdma_server`, which exchange one message, and `rdma_xclient` and
//! `rdma_xserver`, of which only the client sends.

use rdmacm::{Cause, CmConnection, Connection, Connector, Incoming, Listener, Message};
use rdmacm_core::{EventKind, IdHandle};
use rdmacm_tests::{PATIENCE, Site, free_port, post_message, receive, send};
use rdmacm_verbs::QueuePair;

use super::listening::wait_until_it_listens;
use super::tool::Tool;
use crate::packet_delay::{LostPackets, hold_back_first_messages};
use rdmacm_tests_macros::case;

/// The tools.
pub(crate) const TOOLS: [&str; 4] = ["rdma_client", "rdma_server", "rdma_xclient", "rdma_xserver"];

/// The length of a message in bytes.
const SIZE: usize = 16;

/// A connection to a tool's server.
fn connect(site: &Site, port: u16) -> CmConnection<QueuePair> {
    hold_back_first_messages(site, &port.to_string());
    let connector = Connector::new(site.v4(port)).deadline(PATIENCE);
    let make = |id: &IdHandle| Ok(site.posted(id, 1, SIZE));
    connector.connect_with(make).unwrap()
}

/// The request of a tool's client. On iWARP its first message is lost until it is accepted.
fn request(
    site: &Site,
    listener: &Listener,
    tool: &str,
    more: &[&str],
) -> (Option<LostPackets>, Incoming, Tool) {
    let (address, port) = (
        site.v4.to_string(),
        listener.local_addr().port().to_string(),
    );
    let arguments = ["-s", &address, "-p", &port];
    let until_accepted = LostPackets::first_messages(site, &port);
    let client = Tool::start(tool, &[&arguments, more].concat());
    (until_accepted, listener.accept(PATIENCE).unwrap(), client)
}

/// A tool's client that is connected to this side.
fn accept(
    site: &Site,
    listener: &Listener,
    tool: &str,
    more: &[&str],
) -> (CmConnection<QueuePair>, Tool) {
    let (_until_accepted, incoming, client) = request(site, listener, tool, more);
    let make = |id: &IdHandle| Ok(site.posted(id, 1, SIZE));
    (incoming.accept_with(make).unwrap(), client)
}

/// The tool disconnects, and this side does too.
fn disconnect(connection: &CmConnection<QueuePair>) {
    let end = connection.closed(PATIENCE).unwrap();
    assert_eq!(end.kind(), EventKind::Disconnected);
    connection.close(PATIENCE).unwrap();
}

#[case(needs(OneMessageTools))]
fn its_server_answers(site: &Site) {
    let port = free_port();
    let (address, service) = (site.v4.to_string(), port.to_string());
    let server = Tool::start("rdma_server", &["-s", &address, "-p", &service]);
    wait_until_it_listens(&server, &format!("{address}:{port}"));
    let connection = connect(site, port);
    send(connection.queue_pair(), b"sixteen bytes of");
    assert_eq!(receive(connection.queue_pair()).len(), SIZE);
    disconnect(&connection);
    let ended = server.finish();
    ended.assert_success();
    ended.assert_printed_all(&["rdma_server: start", "rdma_server: end 0"]);
}

#[case(needs(OneMessageTools))]
fn its_client_is_answered(site: &Site) {
    let listener = Listener::bind(site.v4(free_port())).unwrap();
    let (connection, client) = accept(site, &listener, "rdma_client", &[]);
    assert_eq!(receive(connection.queue_pair()).len(), SIZE);
    post_message(connection.queue_pair(), b"sixteen bytes of");
    disconnect(&connection);
    let ended = client.finish();
    ended.assert_success();
    ended.assert_printed_all(&["rdma_client: start", "rdma_client: end 0"]);
}

/// What a connection receives before its peer disconnects.
fn last_message(connection: &Connection) -> Message {
    let message = connection.receive().unwrap().unwrap();
    assert_eq!(message.len(), SIZE);
    message
}

#[case(needs(OneMessageTools))]
fn its_server_answers_a_connection(site: &Site) {
    let port = free_port();
    let (address, service) = (site.v4.to_string(), port.to_string());
    let server = Tool::start("rdma_server", &["-s", &address, "-p", &service]);
    wait_until_it_listens(&server, &format!("{address}:{port}"));
    hold_back_first_messages(site, &service);
    let connector = Connector::new(site.v4(port)).deadline(PATIENCE);
    let connection = connector.connect().unwrap();
    connection.set_deadline(PATIENCE);
    connection.send(b"sixteen bytes of").unwrap();
    last_message(&connection);
    assert!(connection.receive().unwrap().is_none());
    connection.close(PATIENCE).unwrap();
    let ended = server.finish();
    ended.assert_success();
    ended.assert_printed_all(&["rdma_server: start", "rdma_server: end 0"]);
}

#[case(needs(OneMessageTools))]
fn its_client_is_answered_by_a_connection(site: &Site) {
    let listener = Listener::bind(site.v4(free_port())).unwrap();
    let (until_accepted, incoming, client) = request(site, &listener, "rdma_client", &[]);
    let connection = incoming.accept().unwrap();
    drop(until_accepted);
    connection.set_deadline(PATIENCE);
    let message = last_message(&connection);
    connection.send(&message).unwrap();
    assert!(connection.receive().unwrap().is_none());
    // The client disconnects as soon as it has the answer. The device may learn of that before it
    // completes the request, and reports a failure then, although the client has succeeded.
    if let Err(error) = connection.close(PATIENCE) {
        assert!(matches!(error.cause(), Cause::Closed(_)), "{error}");
    }
    let ended = client.finish();
    ended.assert_success();
    ended.assert_printed_all(&["rdma_client: start", "rdma_client: end 0"]);
}

#[case(needs(OneMessageTools))]
fn its_xserver_disconnects(site: &Site) {
    let port = free_port();
    let service = port.to_string();
    let server = Tool::start("rdma_xserver", &["-p", &service, "-c", "r"]);
    wait_until_it_listens(&server, &format!("0.0.0.0:{port}"));
    let connection = connect(site, port);
    post_message(connection.queue_pair(), b"sixteen bytes of");
    disconnect(&connection);
    let ended = server.finish();
    ended.assert_success();
    ended.assert_contains("rdma_xserver: end 0");
}

#[case(needs(OneMessageTools))]
fn its_xclient_sends(site: &Site) {
    let listener = Listener::bind(site.v4(free_port())).unwrap();
    let port = listener.local_addr().port().to_string();
    // It disconnects when it has sent: siw drops a message that it has not read by then.
    let until_received = LostPackets::ends(site, &port);
    let (connection, client) = accept(site, &listener, "rdma_xclient", &["-c", "r"]);
    assert_eq!(receive(connection.queue_pair()).len(), SIZE);
    drop(until_received);
    disconnect(&connection);
    let ended = client.finish();
    ended.assert_success();
    ended.assert_contains("rdma_xclient: end 0");
}
