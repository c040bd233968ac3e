//! rping: its handshake with this library's core, and its data with `rdmacm ping`. Its
//! persistent server accepts any number of connections; its client opens one and sends
//! at once.

use std::time::Duration;

use rdmacm::{Listener, Node};
use rdmacm_tests::{PATIENCE, Site, Soft, free_port};

use super::listening::wait_until_it_listens;
use super::our_side::End;
use super::tool::{Ended, Tool};
use super::{ASKED, CONNECTIONS, REQUEST_ROOM, check_no_private_data, check_request};
use super::{check_established, connect_to};
use crate::command::ping::{client, server};
use crate::packet_delay::hold_back_first_messages;
use rdmacm_tests_macros::case;

/// Each connection needs a client process, which starts slowly under emulation.
const RUNS: usize = 6;

/// It moves its queue pair itself where the device allows that.
fn by_hand(site: &Site) -> &'static [&'static str] {
    match site.soft {
        Soft::Rxe => &["-q"],
        Soft::Siw => &[],
    }
}

/// A connection ends before the next begins: its server has space for three.
#[case(needs(Tools))]
fn its_server_takes_a_hundred_connections(site: &Site) {
    let by_hand = by_hand(site);
    // With the verbs interface it offers what its client requests.
    let agreed = if by_hand.is_empty() { ASKED } else { (1, 1) };
    for (more, agreed) in [(&[][..], ASKED), (by_hand, agreed)] {
        let port = free_port();
        let (address, service) = (site.v4.to_string(), port.to_string());
        let arguments = ["-s", "-P", "-d", "-a", &address, "-p", &service];
        let mut server = Tool::start("rping", &[&arguments, more].concat());
        wait_until_it_listens(&server, &format!("{address}:{port}"));
        let node = Node::open().unwrap();
        for _ in 0..CONNECTIONS / 2 {
            let connection = connect_to(site, &node, site.v4(port));
            check_established(site, &connection, agreed);
            // It waits for both events, and does not answer a disconnect that arrives
            // before the others.
            server.wait_for("ESTABLISHED");
            connection.close(PATIENCE).unwrap();
            server.wait_for("server DISCONNECT EVENT...");
        }
        server.stop();
    }
}

#[case(needs(Tools))]
fn its_client_connects_repeatedly(site: &Site) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port().to_string();
    for run in 0..RUNS {
        let address = site.v4.to_string();
        let arguments = ["-c", "-d", "-a", &address, "-p", &port, "-C", "1"];
        let more = if run % 2 == 0 { &[] } else { by_hand(site) };
        let mut client = Tool::start("rping", &[&arguments, more].concat());
        let incoming = listener.accept(PATIENCE).unwrap();
        let asked = incoming.peer().unwrap();
        check_request(site, &asked, 7, 7);
        check_no_private_data(site, incoming.private_data(), REQUEST_ROOM);
        let connection = incoming.accept_on(End::new(site)).unwrap();
        let end = connection.queue_pair();
        end.check_connected_to(asked.qp_number);
        // From here on it takes the peer's disconnect for the orderly end.
        client.wait_for("RDMA addr ");
        connection.close(PATIENCE).unwrap();
        let ended = client.finish();
        ended.assert_printed("rdma_connect successful");
        ended.assert_printed("client DISCONNECT EVENT...");
        ended.assert_success();
    }
}

/// The timeout for a thousand pings under emulation, beside other tests.
const LONG: Duration = Duration::from_secs(300);

/// rping in this role on this port.
fn rping(site: &Site, role: &str, port: &str, more: &[&str]) -> Tool {
    let address = site.v4.to_string();
    if role == "-c" {
        hold_back_first_messages(site, port);
    }
    let arguments = [role, "-a", &address, "-p", port];
    Tool::start("rping", &[&arguments, more].concat())
}

/// Its server, which listens.
fn its_server(site: &Site, more: &[&str]) -> (Tool, String) {
    let port = free_port().to_string();
    let server = rping(site, "-s", &port, &[&["-d"], more].concat());
    wait_until_it_listens(&server, &format!("{}:{port}", site.v4));
    (server, port)
}

#[case(needs(Tools))]
fn its_server_returns_a_thousand_pings(site: &Site) {
    let (server, port) = its_server(site, &[]);
    let client = client(site, &port, &["--count", "1000", "--validate"]);
    let ended = client.finish_within(LONG);
    ended.assert_success();
    ended.assert_contains(": 1000 pings of 64 bytes in ");
    server.finish().assert_success();
}

#[case(needs(Tools))]
fn its_client_gets_a_thousand_pings_back(site: &Site) {
    let (server, port) = server(site, &["--count", "1000"]);
    let mut client = rping(site, "-c", &port, &["-C", "1000", "-V", "-v"]);
    client.wait_for("ping data: rdma-ping-0: ");
    client.finish_within(LONG).assert_success();
    let ended = server.finish();
    ended.assert_success();
    ended.assert_contains(": 1000 pings");
}

/// Of two requests that arrive before it has read the first, its server loses one.
#[case(needs(Tools))]
fn its_persistent_server_is_pinged_at_once(site: &Site) {
    for more in [&[][..], by_hand(site)] {
        let (mut server, port) = its_server(site, &[&["-P"], more].concat());
        let arguments = ["--count", "20", "--validate"];
        let clients = [(); 3].map(|()| {
            let client = client(site, &port, &arguments);
            server.wait_for("accepting client connection request");
            client
        });
        let ended = clients.map(Tool::finish);
        ended.iter().for_each(Ended::assert_success);
        server.stop();
    }
}

#[case(needs(Tools))]
fn its_clients_ping_a_persistent_server_at_once(site: &Site) {
    let (server, port) = server(site, &["--persistent", "--json"]);
    let arguments = ["-C", "20", "-V"];
    for more in [&[][..], by_hand(site)] {
        let arguments = [&arguments, more].concat();
        let clients = [(); 3].map(|()| rping(site, "-c", &port, &arguments));
        let ended = clients.map(Tool::finish);
        ended.iter().for_each(Ended::assert_success);
    }
    server.interrupt();
    let ended = server.finish();
    ended.assert_success();
    assert_eq!(ended.document()["pings"], 120);
}

/// rping's own limit is 65,535 bytes.
#[case(needs(Tools))]
fn largest_pings(site: &Site) {
    let largest = "65535";
    let (server, port) = its_server(site, &["-S", largest]);
    let arguments = ["--count", "10", "--validate", "--size", largest];
    client(site, &port, &arguments).finish().assert_success();
    server.finish().assert_success();
    let (server, port) = self::server(site, &[]);
    let client = rping(site, "-c", &port, &["-C", "10", "-V", "-S", largest]);
    client.finish().assert_success();
    server.finish().assert_success();
}

#[case(needs(Tools))]
fn its_client_sees_our_server_disconnect(site: &Site) {
    let (server, port) = server(site, &["--json"]);
    let mut client = rping(site, "-c", &port, &["-v"]);
    client.wait_for("ping data: rdma-ping-3: ");
    server.interrupt();
    client.wait_for("client DISCONNECT EVENT...");
    let ended = server.finish();
    ended.assert_success();
    let document = ended.document();
    assert_eq!(document["interrupted"], true);
    assert!(document["pings"].as_u64().unwrap() > 3, "{document}");
    drop(client);
}

#[case(needs(Tools))]
fn its_server_sees_our_client_disconnect(site: &Site) {
    let (mut server, port) = its_server(site, &["-v"]);
    let client = client(site, &port, &["--json"]);
    server.wait_for("server ping data: rdma-ping-3: ");
    client.interrupt();
    server.wait_for("server DISCONNECT EVENT...");
    let ended = client.finish();
    ended.assert_success();
    let document = ended.document();
    assert_eq!(document["interrupted"], true);
    assert!(document["pings"].as_u64().unwrap() >= 3, "{document}");
}
