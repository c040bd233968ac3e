//! cmtime, which times simultaneous connections. Before rdma-core 52 its client
//! disconnects when all connections are established, and its server disconnects with
//! its clients and never ends.

use std::process::Command;

use rdmacm::{Listener, Node};
use rdmacm_core::{ConnParam, EventKind};
use rdmacm_tests::{PATIENCE, Site};

use super::listening::{wait_until_it_listens, wait_until_it_only_listens};
use super::our_side::End;
use super::tool::Tool;
use super::{ASKED, REQUEST_ROOM, check_no_private_data, check_request, shares};
use super::{check_established, connect_to};
use crate::rdma_core::RdmaCore;
use rdmacm_tests_macros::case;

mod control;
pub(crate) mod mesh;

/// cmtime fails on siw with more connections than this in one process.
const ON_SIW: usize = 50;

/// The usage text of a cmtime, if it is installed.
fn usage(rdma_core: RdmaCore) -> Option<String> {
    let usage = Command::new(rdma_core.tool("cmtime")).arg("-h").output();
    Some(String::from_utf8_lossy(&usage.ok()?.stdout).into_owned())
}

/// Whether the system's cmtime needs only connections.
pub(crate) fn is_alone() -> bool {
    usage(RdmaCore::System).is_some_and(|usage| !usage.contains("num_threads"))
}

#[case(needs(Cmtime))]
fn its_server_takes_a_hundred_connections(site: &Site) {
    for count in shares(site, ON_SIW) {
        let port = rdmacm_tests::free_port();
        let (address, service) = (site.v4.to_string(), port.to_string());
        let server = Tool::start("cmtime", &["-b", &address, "-p", &service]);
        let its_address = format!("{address}:{port}");
        wait_until_it_listens(&server, &its_address);
        let node = Node::open().unwrap();
        let connections: Vec<_> = (0..count)
            .map(|_| {
                let connection = connect_to(site, &node, site.v4(port));
                check_established(site, &connection, ASKED);
                connection
            })
            .collect();
        for connection in connections {
            connection.close(PATIENCE).unwrap();
        }
        // It destroys disconnected ids and prints nothing.
        wait_until_it_only_listens(&its_address);
        server.stop().assert_printed_all(&[]);
    }
}

#[case(needs(Cmtime))]
fn its_client_makes_a_hundred_connections(site: &Site) {
    for count in shares(site, ON_SIW) {
        accept_its_client(site, count);
    }
}

fn accept_its_client(site: &Site, count: usize) {
    let listener = Listener::bind(site.v4(0)).unwrap();
    let port = listener.local_addr().port().to_string();
    let (address, total) = (site.v4.to_string(), count.to_string());
    let arguments = ["-s", &address, "-p", &port, "-c", &total, "-r", "3"];
    let client = Tool::start("cmtime", &arguments);
    let connections: Vec<_> = (0..count)
        .map(|_| {
            let incoming = listener.accept(PATIENCE).unwrap();
            let asked = incoming.peer().unwrap();
            check_request(site, &asked, 3, 0);
            check_no_private_data(site, incoming.private_data(), REQUEST_ROOM);
            let answer = ConnParam::new().private_data(b"welcome").unwrap();
            let connection = incoming.param(answer).accept_on(End::new(site)).unwrap();
            let end = connection.queue_pair();
            end.check_connected_to(asked.qp_number);
            connection
        })
        .collect();
    for connection in connections {
        let end = connection.closed(PATIENCE).unwrap();
        assert_eq!(end.kind(), EventKind::Disconnected);
        connection.close(PATIENCE).unwrap();
    }
    let ended = client.finish();
    ended.assert_success();
    let steps = |line: &str| !line.contains(':') && !line.starts_with("step ");
    let steps: Vec<_> = ended.printed().iter().filter(|line| steps(line)).collect();
    assert_eq!(
        steps,
        [
            "creating id",
            "resolving address",
            "resolving route",
            "creating qp",
            "connecting",
            "disconnecting",
            "destroying id",
        ]
    );
}
