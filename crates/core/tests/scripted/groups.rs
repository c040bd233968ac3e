//! Multicast groups.

use rdmacm_abi::{EventNumber, JoinIpMulticast, JoinMulticast, LeaveMulticast};
use rdmacm_core::{AddressAbi, CmAddr, CommandNumber, Error, IbAddr, JoinFlags, PortSpace};

use crate::script::FIRST_ID;
use crate::{Fixture, errno, invalid};

const FULL: JoinFlags = JoinFlags::FULL_MEMBER;

fn group(number: u8) -> CmAddr {
    CmAddr::from(([239, 71, 0, number], 0))
}

#[test]
fn a_group_is_joined_reported_and_left_when_dropped() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::UDP);
    let send_only = JoinFlags::SEND_ONLY_FULL_MEMBER;
    let one = id.join_multicast(group(1), send_only).unwrap();
    let request: JoinMulticast = fixture.ucma.only(CommandNumber::JOIN_MCAST);
    assert_eq!((request.id, request.join_flags), (FIRST_ID, send_only));
    assert_eq!(request.addr.as_in().unwrap().addr.get(), 0xef47_0001);
    assert_eq!((one.address(), one.id()), (group(1), &id.handle()));
    let other = id.join_multicast(group(2), FULL).unwrap();
    let event = fixture.event(EventNumber::MULTICAST_JOIN, 0);
    assert_eq!(*event.id(), id);
    assert!(other.concerns(&event) && !one.concerns(&event));
    fixture.ucma.forget();
    drop(one);
    let request: LeaveMulticast = fixture.ucma.only(CommandNumber::LEAVE_MCAST);
    assert_eq!(request.id, FIRST_ID + 1);
    other.leave().unwrap();
    assert_eq!(fixture.sent(), [CommandNumber::LEAVE_MCAST], "once");
}

#[test]
fn events_of_a_group_that_was_left_are_dropped() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::UDP);
    let member = id.join_multicast(group(1), FULL).unwrap();
    let event = fixture.ucma.event(EventNumber::MULTICAST_JOIN, 0);
    member.leave().unwrap();
    fixture.ucma.report(&event);
    assert!(fixture.channel.try_next_event().unwrap().is_none());
}

/// The kernel would leave the other one, and free this one.
#[test]
fn an_id_is_a_member_once() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::UDP);
    let member = id.join_multicast(group(1), FULL).unwrap();
    let send_only = JoinFlags::SEND_ONLY_FULL_MEMBER;
    fixture.ucma.forget();
    for flags in [FULL, send_only] {
        invalid(id.join_multicast(group(1), flags), "a member already");
    }
    assert!(fixture.sent().is_empty());
    // The kernel still has it.
    fixture
        .ucma
        .refuse(CommandNumber::LEAVE_MCAST, libc::EACCES);
    errno(member.leave(), libc::EACCES);
    invalid(id.join_multicast(group(1), FULL), "a member already");
    invalid(id.leave_multicast(group(1)), "not a member");
    let member = id.join_multicast(group(2), FULL).unwrap();
    member.leave().unwrap();
    let _again = id.join_multicast(group(2), send_only).unwrap();
}

#[test]
fn leaving_by_address_ignores_the_port_and_leaves_the_first_joined() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::UDP);
    let _first = id.join_multicast(group(1), FULL).unwrap();
    let _second = id.join_multicast(group(1).with_port(7), FULL).unwrap();
    fixture.ucma.forget();
    id.leave_multicast(group(1).with_port(99)).unwrap();
    let request: LeaveMulticast = fixture.ucma.only(CommandNumber::LEAVE_MCAST);
    assert_eq!(request.id, FIRST_ID + 1);
    invalid(id.leave_multicast(group(2)), "not a member");
    id.leave_multicast(group(1)).unwrap();
    invalid(id.leave_multicast(group(1)), "not a member");
}

#[test]
fn a_group_that_could_not_be_joined_is_unregistered() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::UDP);
    fixture.ucma.refuse(CommandNumber::JOIN_MCAST, libc::ENOSYS);
    let refused = id.join_multicast(group(1), FULL);
    errno(refused, libc::ENOSYS);
    invalid(id.leave_multicast(group(1)), "not a member");
    let event = fixture.ucma.event(EventNumber::MULTICAST_ERROR, 0);
    fixture.ucma.report(&event);
    assert!(fixture.channel.try_next_event().unwrap().is_none());
}

#[test]
fn dropping_an_id_ends_its_groups() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::UDP);
    let member = id.join_multicast(group(1), FULL).unwrap();
    let event = fixture.ucma.event(EventNumber::MULTICAST_JOIN, 0);
    drop(id);
    fixture.ucma.forget();
    fixture.ucma.report(&event);
    assert!(fixture.channel.try_next_event().unwrap().is_none());
    assert_eq!(member.leave(), Err(Error::IdDestroyed));
    assert!(fixture.sent().is_empty());
}

#[test]
fn the_ip_commands_join_full_members_of_ip_groups() {
    let fixture = Fixture::with(AddressAbi::IpOnly);
    let id = fixture.id(PortSpace::UDP);
    let _member = id.join_multicast(group(1), FULL).unwrap();
    let request: JoinIpMulticast = fixture.ucma.only(CommandNumber::JOIN_IP_MCAST);
    assert_eq!(request.id, FIRST_ID);
    let send_only = id.join_multicast(group(2), JoinFlags::SEND_ONLY_FULL_MEMBER);
    let error = send_only.unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    let native: IbAddr = "[ff12::1]".parse().unwrap();
    invalid(id.join_multicast(native, FULL), "no InfiniBand");
    assert!(fixture.sent().is_empty());
}
