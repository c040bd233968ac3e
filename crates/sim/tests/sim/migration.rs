//! Ids that move from channel to channel.

use rdmacm_core::{EventKind, PortSpace};

use crate::pair::{Hosts, client_param, server_param};
use crate::{SECOND, errno, expect};

#[test]
fn unread_events_move_with_their_id() {
    let hosts = Hosts::roce();
    let (old, new) = (
        hosts.client.channel().unwrap(),
        hosts.client.channel().unwrap(),
    );
    let [first, second] = [7, 8].map(|argument| {
        let id = old.create_id(PortSpace::TCP).unwrap();
        id.write_event(0, argument).unwrap();
        id
    });
    first.migrate(&new).unwrap();
    let event = new.next_event(SECOND).unwrap();
    assert_eq!(event.argument(), Some(7));
    let event = old.next_event(SECOND).unwrap();
    assert_eq!(event.argument(), Some(8));
    // What comes later comes there, even once the old file is closed.
    drop((second, old));
    first.resolve_addr(None, hosts.address(), SECOND).unwrap();
    expect(&new, EventKind::AddrResolved);
}

#[test]
fn a_listener_moves_with_its_requests() {
    for hosts in Hosts::each() {
        let listener = hosts.listen(2);
        let channel = hosts.client.channel().unwrap();
        let client = hosts.routed(&channel);
        client.connect(client_param()).unwrap();
        let new = hosts.server.channel().unwrap();
        listener.id.migrate(&new).unwrap();
        assert!(listener.channel.try_next_event().unwrap().is_none());
        let request = new.next_event(SECOND).unwrap();
        let child = request.into_child().unwrap();
        child.accept(server_param()).unwrap();
        let kind = hosts.choose(EventKind::ConnectResponse, EventKind::Established);
        expect(&channel, kind);
    }
}

#[test]
fn ids_move_between_the_files_of_one_host() {
    let hosts = Hosts::roce();
    let here = hosts.client.channel().unwrap();
    let there = hosts.server.channel().unwrap();
    let id = here.create_id(PortSpace::TCP).unwrap();
    errno(id.migrate(&there), libc::EINVAL);
    id.bind((hosts.client.address().unwrap(), 0)).unwrap();
}
