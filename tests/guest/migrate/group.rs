//! Groups migrate with the id that joined them.

use rdmacm_core::{CmAddr, EventKind, JoinFlags, PortSpace};
use rdmacm_tests::{Site, expect};

use super::wait_for_an_event;
use rdmacm_tests_macros::case;

const GROUP: ([u8; 4], u16) = ([239, 71, 1, 7], 0);

#[case(needs(Datagrams))]
fn a_group_moves_with_its_unread_event(site: &Site) {
    let old = site.channel();
    let id = old.create_id(PortSpace::UDP).unwrap();
    id.bind(site.v4(0)).unwrap();
    let group = id
        .join_multicast(CmAddr::from(GROUP), JoinFlags::FULL_MEMBER)
        .unwrap();
    wait_for_an_event(&old);
    let new = site.channel();
    id.migrate(&new).unwrap();
    let event = expect(&new, EventKind::MulticastJoin);
    assert!(group.concerns(&event));
    assert!(old.try_next_event().unwrap().is_none());
    group.leave().unwrap();
}

#[case(needs(Datagrams))]
fn a_moved_group_is_left_on_the_new_channel(site: &Site) {
    let old = site.channel();
    let id = old.create_id(PortSpace::UDP).unwrap();
    id.bind(site.v4(0)).unwrap();
    let flags = JoinFlags::FULL_MEMBER;
    let group = id.join_multicast(CmAddr::from(GROUP), flags).unwrap();
    expect(&old, EventKind::MulticastJoin);
    let new = site.channel();
    id.migrate(&new).unwrap();
    group.leave().unwrap();
    let again = id.join_multicast(CmAddr::from(GROUP), flags).unwrap();
    assert!(again.concerns(&expect(&new, EventKind::MulticastJoin)));
}
