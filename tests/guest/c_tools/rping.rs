//! rping: its handshake. Its persistent server takes as many connections as
//! come; its client makes one and sends at once, which is not for us to receive.

use rdmacm::{Listener, Node};
use rdmacm_tests::{PATIENCE, Site, Soft, free_port};

use super::end::End;
use super::tool::Tool;
use super::{ASKED, CONNECTIONS, REQUEST_ROOM, check_no_private_data, check_request};
use super::{check_established, connect_when_it_listens};

crate::cases!("c_tools::rping":
    its_server_takes_a_hundred_connections,
    its_client_connects_time_after_time,
);

/// Its client is a process to a connection, and starts slowly under emulation.
const RUNS: usize = 6;

/// It leads its queue pair itself where that can be done.
fn by_hand(site: &Site) -> &'static [&'static str] {
    match site.soft {
        Soft::Rxe => &["-q"],
        Soft::Siw => &[],
    }
}

/// Ours end before the next begins: its server has room for three.
fn its_server_takes_a_hundred_connections(site: &Site) {
    let by_hand = by_hand(site);
    // By hand it offers what its client asks for, whoever asks.
    let agreed = if by_hand.is_empty() { ASKED } else { (1, 1) };
    for (more, agreed) in [(&[][..], ASKED), (by_hand, agreed)] {
        let port = free_port();
        let (address, service) = (site.v4.to_string(), port.to_string());
        let arguments = ["-s", "-P", "-a", &address, "-p", &service];
        let mut server = Tool::start("rping", &[&arguments, more].concat());
        let node = Node::open().unwrap();
        for _ in 0..CONNECTIONS / 2 {
            let connection = connect_when_it_listens(site, &node, port);
            check_established(site, &connection, agreed);
            connection.close(PATIENCE).unwrap();
            server.wait_for("server DISCONNECT EVENT...");
        }
        server.stop();
    }
}

fn its_client_connects_time_after_time(site: &Site) {
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
        // From here on it takes a peer that parts for the end, not for a failure.
        client.wait_for("RDMA addr ");
        connection.close(PATIENCE).unwrap();
        let ended = client.finish();
        ended.check_said("rdma_connect successful");
        ended.check_said("client DISCONNECT EVENT...");
        ended.check_success();
    }
}
