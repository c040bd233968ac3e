//! Joining and leaving groups, on RoCE.

use std::net::Ipv6Addr;

use rdmacm_core::{
    AddressAbi, CmAddr, CmId, CommandNumber, Error, EventKind, JoinFlags, PortSpace,
};
use rdmacm_tests::{PATIENCE, Site, expect};

use super::{bound, group, refused};
use rdmacm_tests_macros::case;

fn leave_again(id: &CmId) {
    let error = id.leave_multicast(group(1)).unwrap_err();
    assert!(matches!(error, Error::InvalidInput { .. }), "{error}");
    assert!(error.to_string().contains("not a member"), "{error}");
}

#[case(each_abi, needs(Datagrams), covers(JOIN_IP_MCAST))]
fn a_group_is_joined_and_left(site: &Site) {
    let (channel, id) = bound(site);
    let joined = id.join_multicast(group(1), JoinFlags::FULL_MEMBER).unwrap();
    assert_eq!(joined.address(), group(1));
    assert!(*joined.id() == id);
    let event = expect(&channel, EventKind::MulticastJoin);
    assert!(*event.id() == id && joined.concerns(&event));
    let place = event.ud().unwrap();
    assert_eq!((place.qp_number, place.qkey), (0xFF_FFFF, 0x0123_4567));
    let attr = place.ah_attr;
    assert_eq!((attr.is_global, attr.port_number), (1, 1));
    let mut gid = [0; 16];
    gid[10..].copy_from_slice(&[255, 255, 239, 71, 0, 1]);
    assert_eq!(attr.grh.destination_gid, gid);
    assert_eq!(event.conn(), None);
    joined.leave().unwrap();
    leave_again(&id);
    assert!(channel.try_next_event().unwrap().is_none());
}

#[case(each_abi, needs(Datagrams), covers(JOIN_MCAST))]
fn a_sender_joins_alone(site: &Site) {
    let (channel, id) = bound(site);
    let outcome = id.join_multicast(group(1), JoinFlags::SEND_ONLY_FULL_MEMBER);
    if site.abi == AddressAbi::IpOnly {
        let error = outcome.unwrap_err();
        let command = CommandNumber::JOIN_MCAST;
        assert!(
            matches!(error, Error::Unsupported { command: it, .. } if it == command),
            "{error}"
        );
        assert!(channel.try_next_event().unwrap().is_none());
        leave_again(&id);
    } else {
        let joined = outcome.unwrap();
        assert!(joined.concerns(&expect(&channel, EventKind::MulticastJoin)));
        joined.leave().unwrap();
    }
}

#[case(each_abi, needs(Datagrams))]
fn events_name_their_membership(site: &Site) {
    let (channel, id) = bound(site);
    let flags = JoinFlags::FULL_MEMBER;
    let [one, other] = [1, 2].map(|number| id.join_multicast(group(number), flags).unwrap());
    let events = [(); 2].map(|()| expect(&channel, EventKind::MulticastJoin));
    for joined in [&one, &other] {
        let ours = events.iter().filter(|event| joined.concerns(event));
        assert_eq!(ours.count(), 1);
    }
    one.leave().unwrap();
    other.leave().unwrap();
}

/// Of two memberships with one address, the kernel would leave the other one.
#[case(each_abi, needs(Datagrams))]
fn an_id_is_a_member_once(site: &Site) {
    let (channel, id) = bound(site);
    let join = || id.join_multicast(group(1), JoinFlags::FULL_MEMBER);
    for _ in 0..3 {
        let joined = join().unwrap();
        let error = join().unwrap_err();
        assert!(error.to_string().contains("a member already"), "{error}");
        assert!(joined.concerns(&expect(&channel, EventKind::MulticastJoin)));
        joined.leave().unwrap();
    }
}

#[case(each_abi, needs(Datagrams))]
fn a_group_is_left_by_dropping_it(site: &Site) {
    let (channel, id) = bound(site);
    let joined = id.join_multicast(group(1), JoinFlags::FULL_MEMBER).unwrap();
    expect(&channel, EventKind::MulticastJoin);
    drop(joined);
    leave_again(&id);
}

/// It leaves one of several groups and keeps the others.
#[case(each_abi, needs(Datagrams), covers(LEAVE_MCAST))]
fn a_group_is_left_by_its_address(site: &Site) {
    let (_channel, id) = bound(site);
    let flags = JoinFlags::FULL_MEMBER;
    let groups = [1, 2, 3].map(|number| id.join_multicast(group(number), flags).unwrap());
    for number in [2, 1, 3] {
        id.leave_multicast(group(number)).unwrap();
    }
    leave_again(&id);
    // Leaving by value a group that was left by address is no error.
    for joined in groups {
        joined.leave().unwrap();
    }
}

#[case(each_abi, needs(Datagrams))]
fn leaving_an_unjoined_group_fails(site: &Site) {
    let (_channel, id) = bound(site);
    leave_again(&id);
    let _joined = id.join_multicast(group(2), JoinFlags::FULL_MEMBER).unwrap();
    leave_again(&id);
}

/// The kernel reuses the number of a group at once.
#[case(each_abi, needs(Datagrams))]
fn a_group_survives_another_that_had_its_number(site: &Site) {
    let flags = JoinFlags::FULL_MEMBER;
    let (channel, gone) = bound(site);
    let outlived = gone.join_multicast(group(1), flags).unwrap();
    drop(gone);
    let id = channel.create_id(PortSpace::UDP).unwrap();
    id.bind(site.v4(0)).unwrap();
    let joined = id.join_multicast(group(1), flags).unwrap();
    assert_eq!(outlived.leave(), Err(Error::IdDestroyed));
    assert!(joined.concerns(&expect(&channel, EventKind::MulticastJoin)));
    joined.leave().unwrap();
}

#[case(each_abi, needs(Datagrams))]
fn an_id_leaves_its_groups(site: &Site) {
    let (channel, id) = bound(site);
    let joined = id.join_multicast(group(1), JoinFlags::FULL_MEMBER).unwrap();
    let event = expect(&channel, EventKind::MulticastJoin);
    drop(id);
    assert!(joined.concerns(&event) && joined.id().is_destroyed());
    drop(joined);
    assert!(channel.try_next_event().unwrap().is_none());
}

#[case(each_abi, needs(Datagrams))]
fn unread_events_of_a_left_group_are_dropped(site: &Site) {
    let (channel, id) = bound(site);
    let flags = JoinFlags::FULL_MEMBER;
    let left = id.join_multicast(group(1), flags).unwrap();
    let kept = id.join_multicast(group(2), flags).unwrap();
    left.leave().unwrap();
    assert!(kept.concerns(&expect(&channel, EventKind::MulticastJoin)));
    assert!(channel.try_next_event().unwrap().is_none());
}

#[case(each_abi, needs(Datagrams))]
fn a_resolved_id_joins(site: &Site) {
    let channel = site.channel();
    let id = channel.create_id(PortSpace::UDP).unwrap();
    let destination = site.v4(7471);
    id.resolve_addr(None, destination, PATIENCE).unwrap();
    expect(&channel, EventKind::AddrResolved);
    let joined = id.join_multicast(group(1), JoinFlags::FULL_MEMBER).unwrap();
    assert!(joined.concerns(&expect(&channel, EventKind::MulticastJoin)));
}

#[case(each_abi, needs(Datagrams))]
fn an_id_with_a_route_does_not_join(site: &Site) {
    let channel = site.channel();
    let id = channel.create_id(PortSpace::UDP).unwrap();
    id.resolve_addr(None, site.v4(7471), PATIENCE).unwrap();
    expect(&channel, EventKind::AddrResolved);
    id.resolve_route(PATIENCE).unwrap();
    expect(&channel, EventKind::RouteResolved);
    refused(&id, group(1), libc::EINVAL, "not further than");
}

#[case(each_abi, needs(Datagrams))]
fn roce_refuses_ipv6_groups(site: &Site) {
    const ENOTSUPP: i32 = 524;
    let (_channel, id) = bound(site);
    let group: Ipv6Addr = "ff0e::7147".parse().unwrap();
    refused(&id, CmAddr::from((group, 0)), ENOTSUPP, "IPv4 groups alone");
}
