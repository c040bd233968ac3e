//! mckey: datagrams to a multicast group.

use std::time::Instant;

use rdmacm::DatagramSocket;
use rdmacm_core::CmAddr;
use rdmacm_tests::{PATIENCE, SECOND, Site};

use super::tool::Tool;
use rdmacm_tests_macros::case;

/// The number of datagrams, and their length in bytes.
const MESSAGES: u32 = 10;
const SIZE: usize = 100;

fn start(site: &Site, group: &str, more: &[&str]) -> Tool {
    let address = site.v4.to_string();
    let arguments = ["-m", group, "-b", &address];
    Tool::start("mckey", &[&arguments, more].concat())
}

fn bound(site: &Site) -> DatagramSocket {
    let socket = DatagramSocket::bind(site.v4(0)).unwrap();
    socket.set_deadline(PATIENCE);
    socket
}

#[case(alone, needs(Datagrams, Tools))]
fn it_receives_what_we_send(site: &Site) {
    let mut receiver = start(site, "239.71.9.1", &[]);
    receiver.wait_for("receiving data transfers");
    let socket = bound(site);
    let group = CmAddr::from(([239, 71, 9, 1], 0));
    let to = socket.join_multicast(group, PATIENCE).unwrap();
    for _ in 0..MESSAGES {
        let number = socket.qp_number();
        socket
            .send_to_with_immediate(&[7; SIZE], &to, number)
            .unwrap();
    }
    let ended = receiver.finish();
    ended.assert_success();
    ended.assert_printed("test complete");
}

/// It does not wait for its last datagrams, and its device sends nothing once it has
/// left the group, so it sends far more than the test receives.
#[case(alone, needs(Datagrams, Tools))]
fn we_receive_what_it_sends(site: &Site) {
    let socket = bound(site);
    let group = CmAddr::from(([239, 71, 9, 2], 0));
    let to = socket.join_multicast(group, PATIENCE).unwrap();
    let until = Instant::now() + PATIENCE;
    let mut received = 0;
    while received < MESSAGES {
        assert!(Instant::now() < until, "{received} datagrams");
        let ended = start(site, "239.71.9.2", &["-s", "-C", "2000"]).finish();
        ended.assert_success();
        ended.assert_printed("test complete");
        socket.set_deadline(SECOND / 10);
        while let Ok(datagram) = socket.recv_from() {
            assert_eq!(datagram.len(), SIZE);
            assert_eq!(datagram.destination(), to.gid());
            let sender = datagram.sender().unwrap();
            assert_eq!(datagram.immediate(), Some(sender.qp_number));
            received += 1;
        }
    }
}
