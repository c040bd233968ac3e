//! udaddy: requests for a datagram service and their replies (SIDR). It uses one fixed
//! port; the test of its server uses IPv4 and that of its client IPv6, so that they do
//! not meet.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rdmacm::{DatagramAddr, DatagramSocket, RetryPolicy};
use rdmacm_core::{
    CmAddr, CmId, EventChannel, EventKind, PortSpace, RDMA_UDP_QKEY, SidrStatus, UdInfo, UdParam,
};
use rdmacm_tests::{PATIENCE, SECOND, Site, free_qp_number};

use super::tool::Tool;
use super::{CONNECTIONS, check_no_private_data};
use rdmacm_tests_macros::case;

/// One server at a time on its port, for IPv4 and for IPv6.
static ITS_SERVER: Mutex<()> = Mutex::new(());
static OUR_SERVER: Mutex<()> = Mutex::new(());

/// A failed test leaves no state behind that matters.
fn turn(server: &'static Mutex<()>) -> MutexGuard<'static, ()> {
    server.lock().unwrap_or_else(PoisonError::into_inner)
}

const PORT: u16 = 7174;
/// The space for private data in a request.
const QUESTION_ROOM: usize = 180;
/// The space for private data in a reply.
const ANSWER_ROOM: usize = 136;

fn start(role: &str, address: &str) -> Tool {
    let count = CONNECTIONS.to_string();
    Tool::start("udaddy", &[role, address, "-c", &count, "-C", "0"])
}

#[case(alone, needs(Datagrams, Tools))]
fn its_server_answers_a_hundred_questions(site: &Site) {
    let _turn = turn(&ITS_SERVER);
    let server = start("-b", &site.v4.to_string());
    let channel = site.channel();
    let (_, service) = ask_when_it_listens(site, &channel);
    let mut numbers = vec![checked(site, service)];
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
    ended.assert_success();
    ended.assert_printed_all(&[
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

/// The number of the server's queue pair.
fn checked(site: &Site, service: UdInfo) -> u32 {
    assert_eq!(service.qkey, RDMA_UDP_QKEY);
    assert_eq!(
        (service.ah_attr.is_global, service.ah_attr.port_number),
        (1, 1)
    );
    let gid = service.ah_attr.grh.destination_gid;
    assert_eq!(gid, site.v4.to_ipv6_mapped().octets());
    assert_ne!(service.qp_number, 0);
    service.qp_number
}

/// Sends requests until one is answered.
fn ask_when_it_listens(site: &Site, channel: &EventChannel) -> (CmId, UdInfo) {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let id = resolving(channel, site.v4(PORT));
        rdmacm_tests::expect(channel, EventKind::AddrResolved);
        id.resolve_route(PATIENCE).unwrap();
        rdmacm_tests::expect(channel, EventKind::RouteResolved);
        id.connect(question()).unwrap();
        let event = channel.next_event(PATIENCE).unwrap();
        match (event.kind(), SidrStatus::from_status(event.status())) {
            (EventKind::Established, _) => return (id, event.ud().unwrap()),
            // The server does not listen on this port or address yet.
            (EventKind::Unreachable, Some(SidrStatus::UNSUPPORTED | SidrStatus::REJECT)) => {}
            _ => panic!("{event:?}"),
        }
    }
    panic!("it does not listen");
}

#[case(alone, needs(Datagrams, Tools))]
fn its_client_asks_a_hundred_questions(site: &Site) {
    let _turn = turn(&OUR_SERVER);
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
    ended.assert_success();
    ended.assert_printed_all(&[
        "udaddy: starting client",
        "udaddy: connecting",
        "test complete",
        "return status 0",
    ]);
}

/// The number of datagrams in each direction, and their length.
const MESSAGES: u32 = 10;
const SIZE: usize = 100;

fn start_with_datagrams(role: &str, address: &str) -> Tool {
    Tool::start("udaddy", &[role, address, "-c", "1"])
}

/// All datagrams of the tool, with the queue pair number of each, to which replies go.
fn receive_all(socket: &DatagramSocket) -> DatagramAddr {
    let senders = (0..MESSAGES).map(|_| {
        let datagram = socket.recv_from().unwrap();
        assert_eq!(datagram.len(), SIZE);
        let sender = datagram.sender().unwrap();
        assert_eq!(datagram.immediate(), Some(sender.qp_number));
        sender
    });
    let mut senders: Vec<_> = senders.collect();
    senders.dedup();
    assert_eq!(senders.len(), 1, "{senders:?}");
    senders[0]
}

fn send_all(socket: &DatagramSocket, to: &DatagramAddr) {
    for _ in 0..MESSAGES {
        let number = socket.qp_number();
        socket
            .send_to_with_immediate(&[7; SIZE], to, number)
            .unwrap();
    }
    socket.flush().unwrap();
}

#[case(alone, needs(Datagrams, Tools))]
fn its_server_returns_datagrams(site: &Site) {
    let _turn = turn(&ITS_SERVER);
    let server = start_with_datagrams("-b", &site.v4.to_string());
    // Until it listens.
    let often = RetryPolicy::until_deadline().max_backoff(SECOND / 20);
    let options = DatagramSocket::options().retry(often);
    let asked = options.connect((site.v4.to_string(), PORT), PATIENCE);
    let (socket, peer) = asked.unwrap();
    socket.set_deadline(PATIENCE);
    send_all(&socket, &peer.addr());
    assert_eq!(receive_all(&socket), peer.addr());
    let ended = server.finish();
    ended.assert_success();
    ended.assert_printed("return status 0");
}

#[case(alone, needs(Datagrams, Tools))]
fn its_client_gets_datagrams_back(site: &Site) {
    let _turn = turn(&OUR_SERVER);
    let socket = DatagramSocket::bind(site.v6(PORT)).unwrap();
    socket.set_deadline(PATIENCE);
    let client = start_with_datagrams("-s", &site.v6.to_string());
    let peer = receive_all(&socket);
    assert_eq!(peer.gid(), Some(site.v6.into()));
    send_all(&socket, &peer);
    let ended = client.finish();
    ended.assert_success();
    ended.assert_printed("return status 0");
}
