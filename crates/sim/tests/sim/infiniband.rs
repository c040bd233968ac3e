//! Connections of InfiniBand, by GIDs.

use rdmacm_core::{
    CmId, ConnParam, EventKind, IbAddr, JoinFlags, PortSpace, QpState, RdmaDevices, RejectReason,
    UdParam,
};

use crate::pair::{Side, client_param, server_param};
use crate::{PEER, SECOND, TwoHosts, errno, expect, gid};

fn service(port_space: PortSpace) -> IbAddr {
    IbAddr::new(gid(PEER)).with_ip_service(port_space, 7471)
}

/// A listener on the peer, and an id with a route to it.
fn routed(hosts: &TwoHosts, port_space: PortSpace) -> (Side, Side) {
    let channel = hosts.there.channel().unwrap();
    let id = channel.create_id(port_space).unwrap();
    id.bind(service(port_space)).unwrap();
    id.listen(1).unwrap();
    let listener = Side { channel, id };
    let channel = hosts.channel();
    let id = channel.create_id(port_space).unwrap();
    id.resolve_addr(None, service(port_space), SECOND).unwrap();
    expect(&channel, EventKind::AddrResolved);
    id.resolve_route(SECOND).unwrap();
    expect(&channel, EventKind::RouteResolved);
    (listener, Side { channel, id })
}

fn ask(listener: &Side, client: &Side, param: ConnParam) -> CmId {
    client.id.connect(param).unwrap();
    let request = listener.expect(EventKind::ConnectRequest);
    assert!(request.private_data().starts_with(b"\0hello"));
    assert_eq!(request.private_data().len(), 92);
    request.into_child().unwrap()
}

#[test]
fn gids_connect() {
    let hosts = TwoHosts::new();
    let (listener, client) = routed(&hosts, PortSpace::TCP);
    let param = client_param().private_data(b"\0hello").unwrap();
    let child = ask(&listener, &client, param);
    let rtr = child.init_qp_attr(QpState::RTR).unwrap();
    assert_eq!((rtr.ah_attr.destination_lid, rtr.ah_attr.is_global), (1, 0));
    child.accept(server_param()).unwrap();
    client.expect(EventKind::ConnectResponse);
    client.id.establish().unwrap();
    listener.expect(EventKind::Established);
    assert_eq!(child.gids().unwrap().source, gid(PEER));
    child.disconnect().unwrap();
    client.expect(EventKind::Disconnected);
}

#[test]
fn all_of_a_request_is_private_data_without_addresses() {
    let hosts = TwoHosts::new();
    let (listener, client) = routed(&hosts, PortSpace::TCP);
    let mut data = [7; 92];
    data[..6].copy_from_slice(b"\0hello");
    let param = client_param().private_data(&data).unwrap();
    drop(ask(&listener, &client, param));
    let event = client.expect(EventKind::Rejected);
    let reason = event.failure().unwrap().reject_reason();
    assert_eq!(reason, Some(RejectReason::CONSUMER_DEFINED));
}

#[test]
fn a_service_has_the_key_of_its_queue_pair() {
    let hosts = TwoHosts::new();
    let (listener, client) = routed(&hosts, PortSpace::UDP);
    client.id.connect(UdParam::new()).unwrap();
    let request = listener.expect(EventKind::ConnectRequest);
    let child = request.into_child().unwrap();
    let param = UdParam::new().qp_number(18).qkey(0x7147);
    child.accept(param).unwrap();
    let ud = client.expect(EventKind::Established).ud().unwrap();
    assert_eq!((ud.qp_number, ud.qkey), (18, 0x7147));
}

#[test]
fn a_group_is_a_gid() {
    let hosts = TwoHosts::new();
    let channel = hosts.channel();
    let id = channel.create_id(PortSpace::UDP).unwrap();
    id.bind(IbAddr::new(gid(crate::GID))).unwrap();
    let group = IbAddr::new(gid("ff12::7147"));
    let joined = id.join_multicast(group, JoinFlags::FULL_MEMBER).unwrap();
    let event = channel.next_event(SECOND).unwrap();
    assert!(joined.concerns(&event));
    let ud = event.ud().unwrap();
    assert_eq!(ud.ah_attr.grh.destination_gid, gid("ff12::7147").0);
}

#[test]
fn a_port_without_a_link_is_unreachable() {
    let hosts = TwoHosts::new();
    let (_listener, client) = routed(&hosts, PortSpace::TCP);
    hosts.there.set_link_up("mlx5_0", false);
    client.id.connect(client_param()).unwrap();
    client.expect_errno(EventKind::Unreachable, libc::ETIMEDOUT);
    errno(client.id.connect(client_param()), libc::EINVAL);
}

#[test]
fn a_link_that_is_down_makes_ports_inactive() {
    let hosts = TwoHosts::new();
    let channel = hosts.channel();
    let failure = |kind| {
        let event = channel.next_event(None).unwrap();
        assert_eq!(event.kind(), kind);
        event.failure().unwrap().raw_os_error()
    };
    let id = crate::resolved(&channel);
    hosts.there.set_link_up("mlx5_0", false);
    id.resolve_route(SECOND).unwrap();
    assert_eq!(failure(EventKind::RouteError), Some(libc::EINVAL));
    hosts.there.set_link_up("mlx5_0", true);
    hosts.here.set_link_up("mlx5_0", false);
    id.resolve_route(SECOND).unwrap();
    assert_eq!(failure(EventKind::RouteError), Some(libc::ETIMEDOUT));
    assert!(hosts.here.infiniband_ports().unwrap().is_empty());
    let late = channel.create_id(PortSpace::TCP).unwrap();
    let to = service(PortSpace::TCP);
    errno(late.resolve_addr(None, to, SECOND), libc::ENODEV);
    hosts.here.set_link_up("mlx5_0", true);
    id.resolve_route(SECOND).unwrap();
    expect(&channel, EventKind::RouteResolved);
    let late = crate::resolved(&channel);
    drop(late);
}
