//! udaddy: questions for a datagram service, and their answers (SIDR). It knows
//! one port alone; its server is asked by IPv4 and its client asks by IPv6, so
//! that the two do not meet.

use std::time::Instant;

use rdmacm_core::{CmAddr, CmId, EventChannel, EventKind, PortSpace, SidrStatus, UdInfo, UdParam};
use rdmacm_tests::{PATIENCE, Site, free_qp_number};

use super::tool::Tool;
use super::{CONNECTIONS, check_no_private_data};

crate::cases!("c_tools::udaddy":
    its_server_answers_a_hundred_questions,
    its_client_asks_a_hundred_questions,
);

const PORT: u16 = 7174;
/// `RDMA_UDP_QKEY` of the kernel's `include/rdma/rdma_cm.h`.
const QKEY: u32 = 0x0123_4567;
/// The room for private data in a question.
const QUESTION_ROOM: usize = 180;
/// And in an answer.
const ANSWER_ROOM: usize = 136;

fn start(role: &str, address: &str) -> Tool {
    let count = CONNECTIONS.to_string();
    Tool::start("udaddy", &[role, address, "-c", &count, "-C", "0"])
}

fn its_server_answers_a_hundred_questions(site: &Site) {
    let server = start("-b", &site.v4.to_string());
    let channel = site.channel();
    let mut numbers = vec![ask_when_it_listens(site, &channel)];
    let ids: Vec<_> = (1..CONNECTIONS)
        .map(|_| resolving(&channel, site.v4(PORT)))
        .collect();
    while numbers.len() < CONNECTIONS {
        let event = channel.next_event(PATIENCE).unwrap();
        assert_eq!(event.failure(), None, "{event:?}");
        let id = ids.iter().find(|id| *event.id() == **id).unwrap();
        match event.kind() {
            EventKind::AddrResolved => id.resolve_route(PATIENCE).unwrap(),
            EventKind::RouteResolved => id.connect(question()).unwrap(),
            EventKind::Established => {
                check_no_private_data(site, event.private_data(), ANSWER_ROOM);
                numbers.push(checked(site, event.ud().unwrap()));
            }
            kind => panic!("{kind}"),
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), CONNECTIONS, "a queue pair for each");
    let ended = server.finish();
    ended.check_success();
    ended.check_said_all(&[
        "udaddy: starting server",
        "test complete",
        "return status 0",
    ]);
}

fn resolving(channel: &EventChannel, destination: CmAddr) -> CmId {
    let id = channel.create_id(PortSpace::UDP).unwrap();
    id.resolve_addr(None, destination, PATIENCE).unwrap();
    id
}

fn question() -> UdParam {
    UdParam::new().private_data(b"hello").unwrap()
}

/// The number of the queue pair that serves.
fn checked(site: &Site, service: UdInfo) -> u32 {
    assert_eq!(service.qkey, QKEY);
    assert_eq!(
        (service.ah_attr.is_global, service.ah_attr.port_number),
        (1, 1)
    );
    let gid = service.ah_attr.grh.destination_gid;
    assert_eq!(gid, site.v4.to_ipv6_mapped().octets());
    assert_ne!(service.qp_number, 0);
    service.qp_number
}

/// Asks until somebody answers.
fn ask_when_it_listens(site: &Site, channel: &EventChannel) -> u32 {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let id = resolving(channel, site.v4(PORT));
        rdmacm_tests::expect(channel, EventKind::AddrResolved);
        id.resolve_route(PATIENCE).unwrap();
        rdmacm_tests::expect(channel, EventKind::RouteResolved);
        id.connect(question()).unwrap();
        let event = channel.next_event(PATIENCE).unwrap();
        match (event.kind(), SidrStatus::from_status(event.status())) {
            (EventKind::Established, _) => return checked(site, event.ud().unwrap()),
            // Nobody on this port yet, or nobody on this address of it.
            (EventKind::Unreachable, Some(SidrStatus::UNSUPPORTED | SidrStatus::REJECT)) => {}
            _ => panic!("{event:?}"),
        }
    }
    panic!("it does not listen");
}

fn its_client_asks_a_hundred_questions(site: &Site) {
    let channel = site.channel();
    let listener = channel.create_id(PortSpace::UDP).unwrap();
    listener.bind(site.v6(PORT)).unwrap();
    listener.listen(0).unwrap();
    let client = start("-s", &site.v6.to_string());
    let mut children = Vec::new();
    while children.len() < CONNECTIONS {
        let request = rdmacm_tests::expect(&channel, EventKind::ConnectRequest);
        assert!(*request.id() == listener);
        check_no_private_data(site, request.private_data(), QUESTION_ROOM);
        let child = request.into_child().unwrap();
        assert_eq!(child.port_space(), PortSpace::UDP);
        let peer = child.peer_addr().unwrap().unwrap();
        assert_eq!(peer.ip(), Some(site.v6.into()));
        let answer = UdParam::new().qp_number(free_qp_number());
        child.accept(answer.private_data(b"here").unwrap()).unwrap();
        children.push(child);
    }
    let ended = client.finish();
    ended.check_success();
    ended.check_said_all(&[
        "udaddy: starting client",
        "udaddy: connecting",
        "test complete",
        "return status 0",
    ]);
}
