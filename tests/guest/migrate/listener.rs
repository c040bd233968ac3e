//! Listeners that migrate, and the child ids of their requests, which the kernel leaves
//! on the old file.

use rdmacm_core::{ConnParam, EventChannel, EventKind, PortSpace};
use rdmacm_tests::{Listening, PATIENCE, PendingRequest, Side, Site};

use super::wait_for_an_event;
use rdmacm_tests_macros::case;

fn connect(site: &Site, listener: &Listening) -> Side {
    let client = site.side(listener);
    let with = client.id.with_queue_pair(&client.queue_pair);
    with.connect(ConnParam::new()).unwrap();
    client
}

fn relocate(listener: &mut Listening, new: EventChannel) -> EventChannel {
    listener.id.migrate(&new).unwrap();
    std::mem::replace(&mut listener.channel, new)
}

/// Reads the request of `client`, connects and disconnects, all on the listener's
/// channel.
fn assert_follows(site: &Site, listener: Listening, client: Side) {
    let request = listener.next_request();
    let pending = PendingRequest {
        request,
        listener,
        client,
    };
    pending.accept(site, &ConnParam::new()).disconnect_both();
}

#[case]
fn requests_arrive_on_the_new_channel(site: &Site) {
    let mut listener = site.listening(PortSpace::TCP);
    let old = relocate(&mut listener, site.channel());
    let client = connect(site, &listener);
    assert_follows(site, listener, client);
    assert!(old.try_next_event().unwrap().is_none());
}

#[case]
fn an_unread_request_follows(site: &Site) {
    let mut listener = site.listening(PortSpace::TCP);
    let client = connect(site, &listener);
    wait_for_an_event(&listener.channel);
    let old = relocate(&mut listener, site.channel());
    assert_follows(site, listener, client);
    assert!(old.try_next_event().unwrap().is_none());
}

#[case]
fn an_unread_request_follows_twice(site: &Site) {
    let mut listener = site.listening(PortSpace::TCP);
    let client = connect(site, &listener);
    wait_for_an_event(&listener.channel);
    let olds = [(); 2].map(|()| relocate(&mut listener, site.channel()));
    assert_follows(site, listener, client);
    for old in &olds {
        assert!(old.try_next_event().unwrap().is_none());
    }
}

#[case]
fn an_unread_request_comes_back(site: &Site) {
    let mut listener = site.listening(PortSpace::TCP);
    let client = connect(site, &listener);
    wait_for_an_event(&listener.channel);
    let first = relocate(&mut listener, site.channel());
    let second = relocate(&mut listener, first);
    assert_follows(site, listener, client);
    assert!(second.try_next_event().unwrap().is_none());
}

/// Requests that pass through three channels, the first of them twice, and are read on
/// the last.
#[case]
fn requests_of_every_channel_follow(site: &Site) {
    let mut listener = site.listening(PortSpace::TCP);
    let mut clients = vec![connect(site, &listener)];
    wait_for_an_event(&listener.channel);
    let first = relocate(&mut listener, site.channel());
    clients.push(connect(site, &listener));
    let second = relocate(&mut listener, site.channel());
    clients.push(connect(site, &listener));
    let third = relocate(&mut listener, first);
    clients.push(connect(site, &listener));
    let mut children = Vec::new();
    for _ in &clients {
        let request = listener.next_request();
        children.push(request.into_child().unwrap());
    }
    // Each id is on this channel now: the kernel refuses commands from other files.
    for child in &children {
        child.reject(b"all here").unwrap();
    }
    for client in &clients {
        let event = client.channel.next_event(PATIENCE).unwrap();
        assert_eq!(event.kind(), EventKind::Rejected);
        assert!(event.private_data().starts_with(b"all here"));
    }
    for old in [second, third] {
        assert!(old.try_next_event().unwrap().is_none());
    }
}

#[case]
fn the_channel_of_an_unread_request_can_be_dropped(site: &Site) {
    let mut listener = site.listening(PortSpace::TCP);
    let client = connect(site, &listener);
    wait_for_an_event(&listener.channel);
    drop(relocate(&mut listener, site.channel()));
    assert_follows(site, listener, client);
}

/// Its id is on another file than the listener when the listener is destroyed.
#[case]
fn an_unread_request_is_refused_where_it_moved(site: &Site) {
    let mut listener = site.listening(PortSpace::TCP);
    let client = connect(site, &listener);
    wait_for_an_event(&listener.channel);
    let _old = relocate(&mut listener, site.channel());
    let Listening { channel, id } = listener;
    drop(id);
    assert!(channel.try_next_event().unwrap().is_none());
    let event = client.channel.next_event(PATIENCE).unwrap();
    assert_eq!(event.kind(), EventKind::Rejected);
}
