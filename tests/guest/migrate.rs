//! Ids that move to another channel.

pub(crate) mod connection;
pub(crate) mod group;
pub(crate) mod listener;
pub(crate) mod race;
pub(crate) mod waiting;

use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, poll};
use rdmacm_core::{EventChannel, EventKind, PortSpace};
use rdmacm_tests::{PATIENCE, Site, expect};
use rdmacm_tests_macros::case;

/// Waits until an event is pending, without reading it.
fn wait_for_an_event(channel: &EventChannel) {
    let mut fds = [PollFd::new(channel.as_fd(), PollFlags::POLLIN)];
    assert_eq!(poll(&mut fds, 30_000_u16).unwrap(), 1);
}

#[case]
fn a_moved_id_reports_on_its_new_channel(site: &Site) {
    let (old, id) = site.id();
    let new = site.channel();
    id.migrate(&new).unwrap();
    id.resolve_addr(None, site.v4(7471), PATIENCE).unwrap();
    assert!(*expect(&new, EventKind::AddrResolved).id() == id);
    assert!(old.try_next_event().unwrap().is_none());
    id.resolve_route(PATIENCE).unwrap();
    expect(&new, EventKind::RouteResolved);
}

/// Behind the events that are pending already.
#[case(covers(MIGRATE_ID))]
fn unread_events_move_with_their_id(site: &Site) {
    let (old, moving) = site.id();
    moving.resolve_addr(None, site.v4(7471), PATIENCE).unwrap();
    wait_for_an_event(&old);
    let (new, there) = site.id();
    there.resolve_addr(None, site.v4(7471), PATIENCE).unwrap();
    wait_for_an_event(&new);
    moving.migrate(&new).unwrap();
    assert!(*expect(&new, EventKind::AddrResolved).id() == there);
    assert!(*expect(&new, EventKind::AddrResolved).id() == moving);
    assert!(old.try_next_event().unwrap().is_none());
    assert!(new.try_next_event().unwrap().is_none());
}

#[case]
fn events_read_before_the_move_stay_valid(site: &Site) {
    let (old, id) = site.id();
    id.resolve_addr(None, site.v4(7471), PATIENCE).unwrap();
    let event = expect(&old, EventKind::AddrResolved);
    let new = site.channel();
    id.migrate(&new).unwrap();
    assert!(*event.id() == id);
    event.id().resolve_route(PATIENCE).unwrap();
    expect(&new, EventKind::RouteResolved);
}

#[case]
fn an_id_moves_to_its_own_channel(site: &Site) {
    let (channel, id) = site.id();
    id.resolve_addr(None, site.v4(7471), PATIENCE).unwrap();
    id.migrate(&channel).unwrap();
    expect(&channel, EventKind::AddrResolved);
}

#[case]
fn the_old_channel_can_be_dropped(site: &Site) {
    let (old, id) = site.id();
    id.resolve_addr(None, site.v4(7471), PATIENCE).unwrap();
    wait_for_an_event(&old);
    let new = site.channel();
    id.migrate(&new).unwrap();
    drop(old);
    expect(&new, EventKind::AddrResolved);
    id.resolve_route(PATIENCE).unwrap();
    expect(&new, EventKind::RouteResolved);
}

/// Events of other ids are not affected.
#[case]
fn the_number_of_another_id_is_not_moved(site: &Site) {
    let (old, moving) = site.id();
    let staying = old.create_id(PortSpace::TCP).unwrap();
    for id in [&moving, &staying] {
        id.resolve_addr(None, site.v4(7471), PATIENCE).unwrap();
    }
    let new = site.channel();
    moving.migrate(&new).unwrap();
    drop(moving);
    assert!(*expect(&old, EventKind::AddrResolved).id() == staying);
    assert!(new.try_next_event().unwrap().is_none());
}
