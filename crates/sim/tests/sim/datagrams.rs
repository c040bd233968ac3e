//! Datagram services and multicast groups.

use std::time::Duration;

use rdmacm_core::{CmAddr, EventKind, Family, JoinFlags, PortSpace, UdParam};
use rdmacm_sim::MessageKind;

use crate::pair::{Hosts, Side};
use crate::{SECOND, errno, expect};

fn client(hosts: &Hosts) -> Side {
    let channel = hosts.client.channel().unwrap();
    let id = hosts.routed_for(PortSpace::UDP, &channel);
    Side { channel, id }
}

#[test]
fn a_service_says_where_its_queue_pair_is() {
    let hosts = Hosts::roce();
    let listener = hosts.listen_for(PortSpace::UDP, 1);
    let client = client(&hosts);
    let param = UdParam::new().private_data(b"hello").unwrap();
    client.id.connect(param).unwrap();
    let request = listener.next_request();
    assert!(request.private_data().starts_with(b"hello"));
    assert_eq!(request.private_data().len(), 180);
    let child = request.into_child().unwrap();
    let param = UdParam::new().qp_number(18).private_data(b"here").unwrap();
    child.accept(param).unwrap();
    // The server's side is over.
    assert!(listener.channel.try_next_event().unwrap().is_none());
    let event = client.expect(EventKind::Established);
    assert_eq!(event.private_data().len(), 136);
    let ud = event.ud().unwrap();
    assert_eq!((ud.qp_number, ud.qkey), (18, 0x0123_4567));
    let gid = client.id.gids().unwrap().destination.unwrap();
    assert_eq!(ud.ah_attr.grh.destination_gid, gid.0);
    client.id.disconnect().unwrap();
    errno(client.id.connect(UdParam::new()), libc::EINVAL);
}

#[test]
fn a_refused_service_is_unreachable() {
    let hosts = Hosts::roce();
    let absent = client(&hosts);
    absent.id.connect(UdParam::new()).unwrap();
    assert_eq!(absent.expect(EventKind::Unreachable).status(), 1);
    let listener = hosts.listen_for(PortSpace::UDP, 1);
    let rejected = client(&hosts);
    rejected.id.connect(UdParam::new()).unwrap();
    let child = listener.next_request().into_child().unwrap();
    child.reject(b"no").unwrap();
    let event = rejected.expect(EventKind::Unreachable);
    assert_eq!(event.status(), 2);
    assert!(event.private_data().starts_with(b"no"));
    let dropped = client(&hosts);
    dropped.id.connect(UdParam::new()).unwrap();
    drop(listener.next_request());
    assert_eq!(dropped.expect(EventKind::Unreachable).status(), 2);
}

#[test]
fn a_lost_service_request_is_sent_again() {
    let hosts = Hosts::roce();
    let listener = hosts.listen_for(PortSpace::UDP, 1);
    let client = client(&hosts);
    hosts.client.drop_next(MessageKind::ServiceRequest, 1);
    let begun = client.channel.now();
    client.id.connect(UdParam::new()).unwrap();
    let event = listener.channel.next_event(None).unwrap();
    assert_eq!(event.kind(), EventKind::ConnectRequest);
    let late = client.channel.now() - begun;
    assert_eq!(late, Duration::from_millis(4096));
    hosts.server.set_responding(false);
    client.expect_errno(EventKind::Unreachable, libc::ETIMEDOUT);
    let late = client.channel.now() - begun;
    assert_eq!(late, Duration::from_millis(16 * 4096));
}

#[test]
fn a_group_reports_itself() {
    let hosts = Hosts::roce();
    let channel = hosts.client.channel().unwrap();
    let id = channel.create_id(PortSpace::UDP).unwrap();
    let group = CmAddr::from(([239, 71, 0, 1], 0));
    errno(
        id.join_multicast(group, JoinFlags::FULL_MEMBER),
        libc::EINVAL,
    );
    id.bind((hosts.client.address().unwrap(), 0)).unwrap();
    let joined = id.join_multicast(group, JoinFlags::FULL_MEMBER).unwrap();
    let event = channel.next_event(SECOND).unwrap();
    assert_eq!(event.kind(), EventKind::MulticastJoin);
    assert!(joined.concerns(&event));
    let ud = event.ud().unwrap();
    assert_eq!((ud.qp_number, ud.qkey), (0xff_ffff, 0x0123_4567));
    let gid = "::ffff:239.71.0.1".parse::<rdmacm_core::Gid>().unwrap();
    assert_eq!(ud.ah_attr.grh.destination_gid, gid.0);
    joined.leave().unwrap();
    // One that is left reports nothing.
    let left = id.join_multicast(group, JoinFlags::SEND_ONLY_FULL_MEMBER);
    left.unwrap().leave().unwrap();
    assert!(channel.try_next_event().unwrap().is_none());
}

#[test]
fn groups_are_for_datagrams_of_ipv4_on_roce() {
    let group = CmAddr::from(([239, 71, 0, 1], 0));
    for hosts in Hosts::each() {
        let channel = hosts.client.channel().unwrap();
        let bound = |port_space| {
            let id = channel.create_id(port_space).unwrap();
            id.bind((hosts.client.address().unwrap(), 0)).unwrap();
            id
        };
        let join = |id: &rdmacm_core::CmId, group| {
            let joined = id.join_multicast(group, JoinFlags::FULL_MEMBER);
            joined.map(drop).unwrap_err().raw_os_error()
        };
        assert_eq!(join(&bound(PortSpace::TCP), group), Some(libc::EINVAL));
        let datagrams = bound(PortSpace::UDP);
        let none = hosts.choose(libc::EINVAL, libc::ENOSYS);
        assert_eq!(join(&datagrams, CmAddr::any(Family::V4)), Some(none));
        // The kernel's own ENOTSUPP.
        let v6 = CmAddr::from(("ff0e::1".parse::<std::net::Ipv6Addr>().unwrap(), 0));
        let none = hosts.choose(524, libc::ENOSYS);
        assert_eq!(join(&datagrams, v6), Some(none));
    }
}

#[test]
fn a_service_is_not_for_iwarp() {
    let hosts = Hosts::iwarp();
    let client = client(&hosts);
    errno(client.id.connect(UdParam::new()), libc::EINVAL);
    expect_nothing(&client);
}

fn expect_nothing(side: &Side) {
    assert!(side.channel.try_next_event().unwrap().is_none());
    let late = side.id.resolve_route(SECOND);
    errno(late, libc::EINVAL);
    let user = side.id.write_event(0, 7);
    user.unwrap();
    expect(&side.channel, EventKind::User);
}
