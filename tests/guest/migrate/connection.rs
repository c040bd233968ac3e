//! Connections that move, at every stage.

use rdmacm_core::{ConnParam, EventChannel, EventKind};
use rdmacm_tests::{Pair, Side, Site, Soft, expect};

use super::wait_for_an_event;
use rdmacm_tests_macros::case;

/// Migrates to a new channel; the old one remains with the caller.
fn relocate(site: &Site, moving: &mut Side) -> EventChannel {
    let new = site.channel();
    moving.id.migrate(&new).unwrap();
    std::mem::replace(&mut moving.channel, new)
}

#[case]
fn a_child_moves_before_it_is_accepted(site: &Site) {
    let mut pair = site.pending_request().into_pair(site);
    let old = relocate(site, &mut pair.server);
    pair.accept(&ConnParam::new());
    pair.establish(site);
    pair.disconnect_both();
    assert!(old.try_next_event().unwrap().is_none());
}

#[case]
fn a_child_moves_after_it_is_accepted(site: &Site) {
    let mut pair = site.pending_request().into_pair(site);
    pair.accept(&ConnParam::new());
    let old = relocate(site, &mut pair.server);
    pair.establish(site);
    pair.disconnect_both();
    assert!(old.try_next_event().unwrap().is_none());
}

/// With an unread reply.
#[case]
fn a_client_moves_while_it_connects(site: &Site) {
    let mut pair = site.pending_request().into_pair(site);
    pair.accept(&ConnParam::new());
    wait_for_an_event(&pair.client.channel);
    let old = relocate(site, &mut pair.client);
    pair.establish(site);
    pair.disconnect_both();
    assert!(old.try_next_event().unwrap().is_none());
}

#[case]
fn a_connection_moves(site: &Site) {
    let mut pair = site.pair();
    let olds = [
        relocate(site, &mut pair.client),
        relocate(site, &mut pair.server),
    ];
    let Pair { client, server } = &pair;
    client.disconnect();
    server.expect(EventKind::Disconnected);
    server.disconnect();
    client.expect(EventKind::Disconnected);
    if site.soft == Soft::Rxe {
        expect(&client.channel, EventKind::TimewaitExit);
        expect(&server.channel, EventKind::TimewaitExit);
    }
    for old in &olds {
        assert!(old.try_next_event().unwrap().is_none());
    }
}
