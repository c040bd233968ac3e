//! ucmatose, which opens simultaneous connections on one event channel. Its server
//! sends first and disconnects when all connections are established; its client waits
//! for that.

use rdmacm::{CmConnection, Connector, Listener, Node};
use rdmacm_core::{CmId, ConnParam, Event, EventChannel, EventKind, IdHandle, PortSpace};
use rdmacm_tests::{PATIENCE, Site, Soft, free_port, receive, send};
use rdmacm_verbs::QueuePair;

use super::listening::wait_until_it_listens;
use super::our_side::End;
use super::tool::Tool;
use super::{ANSWER_ROOM, ASKED, REQUEST_ROOM, check_answer, check_no_private_data, check_request};
use super::{asking, connect_to, shares};
use crate::packet_delay::hold_back_first_messages_of_the_server;
use rdmacm_tests_macros::case;

/// ucmatose fails on siw with more connections than this in one process.
const ON_SIW: usize = 25;

#[case(needs(Tools))]
fn its_server_takes_a_hundred_connections(site: &Site) {
    for count in shares(site, ON_SIW) {
        connect_to_its_server(site, count);
    }
}

#[case(needs(Tools))]
fn its_client_makes_a_hundred_connections(site: &Site) {
    for count in shares(site, ON_SIW) {
        accept_its_client(site, count);
    }
}

fn start(site: &Site, role: &str, port: u16, count: usize) -> Tool {
    let (address, port, count) = (site.v4.to_string(), port.to_string(), count.to_string());
    let arguments = [role, &address, "-p", &port, "-c", &count, "-C", "0"];
    Tool::start("ucmatose", &arguments)
}

/// One of this side's ids, and its queue pair.
struct Ours {
    id: CmId,
    end: End,
}

impl Ours {
    fn new(site: &Site, id: CmId) -> Self {
        let end = End::new(site);
        Self { id, end }
    }

    fn disconnect(&self) {
        self.id.with_queue_pair(&self.end).disconnect().unwrap();
    }
}

fn next(channel: &EventChannel) -> Event {
    let event = channel.next_event(PATIENCE).unwrap();
    assert_eq!(event.failure(), None, "{event:?}");
    event
}

fn concerned<'a>(all: &'a [Ours], event: &Event) -> &'a Ours {
    all.iter().find(|ours| *event.id() == ours.id).unwrap()
}

/// The first connection waits for the server, the others are opened at once.
fn connect_to_its_server(site: &Site, count: usize) {
    let port = free_port();
    let server = start(site, "-b", port, count);
    wait_until_it_listens(&server, &format!("{}:{port}", site.v4));
    let node = Node::open().unwrap();
    let first = connect_to(site, &node, site.v4(port));
    let channel = site.channel();
    let others: Vec<_> = (1..count)
        .map(|_| Ours::new(site, channel.create_id(PortSpace::TCP).unwrap()))
        .collect();
    for ours in &others {
        let destination = site.v4(port);
        ours.id.resolve_addr(None, destination, PATIENCE).unwrap();
    }
    let mut parted = 0;
    while parted < others.len() {
        let event = next(&channel);
        let ours = concerned(&others, &event);
        let with = ours.id.with_queue_pair(&ours.end);
        match event.kind() {
            EventKind::AddrResolved => ours.id.resolve_route(PATIENCE).unwrap(),
            EventKind::RouteResolved => {
                with.init().unwrap();
                with.connect(asking()).unwrap();
            }
            EventKind::ConnectResponse => {
                check_response(site, &event);
                with.establish(&event).unwrap();
                let peer = event.conn().unwrap().qp_number;
                ours.end.check_connected_to(peer);
            }
            // On iWARP the handshake is then complete.
            EventKind::Established => check_response(site, &event),
            EventKind::Disconnected => {
                ours.disconnect();
                ours.end.check_parted();
                parted += 1;
            }
            // Of the connections that were disconnected first.
            EventKind::TimewaitExit => {}
            kind => panic!("{kind}"),
        }
    }
    let end = first.closed(PATIENCE).unwrap();
    assert_eq!(end.kind(), EventKind::Disconnected);
    first.close(PATIENCE).unwrap();
    let ended = server.finish();
    ended.assert_success();
    ended.assert_printed_all(&[
        "cmatose: starting server",
        "cmatose: disconnecting",
        "disconnected",
        "test complete",
        "return status 0",
    ]);
}

fn check_response(site: &Site, event: &Event) {
    check_answer(site, &event.conn().unwrap(), ASKED);
    check_no_private_data(site, event.private_data(), ANSWER_ROOM);
}

fn accept_its_client(site: &Site, count: usize) {
    let (channel, listener) = site.id();
    let port = free_port();
    listener.bind(site.v4(port)).unwrap();
    listener.listen(0).unwrap();
    let client = start(site, "-s", port, count);
    let mut all = Vec::new();
    let (mut established, mut parted) = (0, 0);
    while parted < count {
        let mut event = next(&channel);
        match event.kind() {
            EventKind::ConnectRequest => {
                assert!(*event.id() == listener);
                let asked = event.conn().unwrap();
                check_request(site, &asked, 5, 0);
                check_no_private_data(site, event.private_data(), REQUEST_ROOM);
                let ours = Ours::new(site, event.take_child().unwrap());
                let peer = ours.id.peer_addr().unwrap().unwrap();
                assert_eq!(peer.ip(), Some(site.v4.into()));
                let with = ours.id.with_queue_pair(&ours.end);
                with.init().unwrap();
                let answer = ConnParam::new().private_data(b"welcome").unwrap();
                with.accept(answer).unwrap();
                ours.end.check_connected_to(asked.qp_number);
                all.push(ours);
            }
            EventKind::Established => {
                concerned(&all, &event);
                established += 1;
                if established == count {
                    all.iter().for_each(Ours::disconnect);
                }
            }
            EventKind::Disconnected => {
                concerned(&all, &event).end.check_parted();
                parted += 1;
            }
            // Of the connections that were disconnected first.
            EventKind::TimewaitExit => {}
            kind => panic!("{kind}"),
        }
    }
    let ended = client.finish();
    ended.assert_success();
    ended.assert_printed_all(&[
        "cmatose: starting client",
        "cmatose: connecting",
        "test complete",
        "return status 0",
    ]);
}

/// The number of messages in each direction on each connection, and their length.
const MESSAGES: u32 = 10;
const SIZE: usize = 100;

/// The number of simultaneous connections with messages, with and without the tool's
/// migration of its ids.
fn exchanges(site: &Site) -> [(usize, &'static [&'static str]); 2] {
    let count = match site.soft {
        Soft::Rxe => 50,
        Soft::Siw => 20,
    };
    [(count, &[]), (3, &["-m"])]
}

/// The tool in this role, with messages.
fn exchanging(site: &Site, role: &str, port: u16, count: usize, more: &[&str]) -> Tool {
    let (address, port, count) = (site.v4.to_string(), port.to_string(), count.to_string());
    let arguments = [role, &address, "-p", &port, "-c", &count];
    Tool::start("ucmatose", &[&arguments, more].concat())
}

fn posted(site: &Site) -> impl Fn(&IdHandle) -> std::io::Result<QueuePair> {
    move |id| Ok(site.posted(id, MESSAGES, SIZE))
}

fn send_all(connections: &[CmConnection<QueuePair>]) {
    for connection in connections {
        (0..MESSAGES).for_each(|_| send(connection.queue_pair(), &[7; SIZE]));
    }
}

fn receive_all(connections: &[CmConnection<QueuePair>]) {
    for connection in connections {
        for _ in 0..MESSAGES {
            assert_eq!(receive(connection.queue_pair()).len(), SIZE);
        }
    }
}

#[case(needs(Tools))]
fn its_server_exchanges_messages(site: &Site) {
    for (count, more) in exchanges(site) {
        let port = free_port();
        hold_back_first_messages_of_the_server(site, &port.to_string());
        let server = exchanging(site, "-b", port, count, more);
        wait_until_it_listens(&server, &format!("{}:{port}", site.v4));
        let node = Node::open().unwrap();
        let connect = || {
            let connector = Connector::new(site.v4(port))
                .with_node(&node)
                .deadline(PATIENCE);
            connector.connect_with(posted(site)).unwrap()
        };
        let connections: Vec<_> = (0..count).map(|_| connect()).collect();
        receive_all(&connections);
        send_all(&connections);
        for connection in connections {
            let end = connection.closed(PATIENCE).unwrap();
            assert_eq!(end.kind(), EventKind::Disconnected);
            connection.close(PATIENCE).unwrap();
        }
        let ended = server.finish();
        ended.assert_success();
        ended.assert_printed("return status 0");
    }
}

#[case(needs(Tools))]
fn its_client_exchanges_messages(site: &Site) {
    for (count, more) in exchanges(site) {
        let listener = Listener::bind(site.v4(free_port())).unwrap();
        let port = listener.local_addr().port();
        hold_back_first_messages_of_the_server(site, &port.to_string());
        let client = exchanging(site, "-s", port, count, more);
        let accept = |_| {
            let incoming = listener.accept(PATIENCE).unwrap();
            incoming.accept_with(posted(site)).unwrap()
        };
        let connections: Vec<_> = (0..count).map(accept).collect();
        send_all(&connections);
        receive_all(&connections);
        for connection in connections {
            connection.close(PATIENCE).unwrap();
        }
        let ended = client.finish();
        ended.assert_success();
        ended.assert_printed("return status 0");
    }
}
