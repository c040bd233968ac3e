//! Ids from their beginning to a route.

use std::net::{Ipv6Addr, SocketAddrV6};
use std::time::Duration;

use rdmacm_abi::{CreateId, CreateIdResponse, IB_IP_PS_IB, PathFlags};
use rdmacm_core::ucma::{Attachment, transact};
use rdmacm_core::{CmAddr, EventChannel, EventKind, Gid, IbAddr, PathData, PortSpace, QpType};
use rdmacm_sim::{Adapter, Fabric, Port, SubnetAdmin};
use zerocopy::FromZeros;

use crate::{GID, PEER, SECOND, TwoHosts, errno, expect, gid, resolved};

#[test]
fn numbers_are_the_lowest_that_are_free() {
    let device = TwoHosts::new().here.open().unwrap();
    let create = |uid| {
        let mut created = CreateIdResponse::new_zeroed();
        let request = CreateId::new(uid, PortSpace::TCP, QpType::RC);
        transact(device.as_ref(), &request, &mut created, Attachment::None).unwrap();
        created.id
    };
    assert_eq!([create(1), create(2)], [0, 1]);
}

#[test]
fn an_address_is_bound_to_the_port_with_its_gid() {
    let hosts = TwoHosts::new();
    let channel = hosts.channel();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    id.bind(IbAddr::new(gid(GID)).with_ip_service(PortSpace::TCP, 7471))
        .unwrap();
    let addresses = id.addresses().unwrap();
    assert_eq!(addresses.port_number, 1);
    assert_eq!(addresses.destination, None);
    assert_eq!(addresses.source.unwrap().port(), 7471);
    let device = channel.look_up(addresses.device.unwrap()).unwrap();
    assert_eq!(device.name, "mlx5_0");
    assert_eq!(id.gids().unwrap().source, gid(GID));
    errno(id.bind(IbAddr::new(gid(GID))), libc::EINVAL);
}

#[test]
fn port_0_is_replaced_by_a_free_port() {
    let hosts = TwoHosts::new();
    let channel = hosts.channel();
    let ids = [(); 2].map(|()| channel.create_id(PortSpace::IB).unwrap());
    let ports = ids.each_ref().map(|id| {
        id.bind(IbAddr::new(gid(GID))).unwrap();
        let Some(CmAddr::Ib(address)) = id.local_addr().unwrap() else {
            panic!("{:?}", id.local_addr());
        };
        assert_eq!(address.service_mask, u64::MAX);
        assert_eq!(address.service_id & !0xffff, IB_IP_PS_IB);
        address.port()
    });
    assert_ne!(ports[0], ports[1]);
    assert!(ports.iter().all(|port| (32768..=60999).contains(port)));
}

#[test]
fn an_address_and_port_belong_to_one_id() {
    let hosts = TwoHosts::new();
    let channel = hosts.channel();
    let bind = |address: IbAddr| {
        let id = channel.create_id(PortSpace::TCP).unwrap();
        id.bind(address).map(|()| id)
    };
    let address = IbAddr::new(gid(GID)).with_ip_service(PortSpace::TCP, 7471);
    let first = bind(address).unwrap();
    errno(bind(address), libc::EADDRINUSE);
    let refused = channel.create_id(PortSpace::TCP).unwrap();
    errno(refused.bind(address), libc::EADDRINUSE);
    // It is attached to no device for all that.
    let addresses = refused.addresses().unwrap();
    assert_eq!((addresses.device, addresses.port_number), (None, 0));
    let wildcard = IbAddr::new(Gid::UNSPECIFIED).with_ip_service(PortSpace::TCP, 7471);
    errno(bind(wildcard), libc::EADDRNOTAVAIL);
    drop(first);
    drop(bind(address).unwrap());
}

#[test]
fn one_port_number_serves_each_address() {
    let fabric = Fabric::new();
    let port = Port::new(gid(GID)).gid(gid("fe80::3"));
    let host = fabric.host([Adapter::infiniband("mlx5_0").port(port)]);
    let device = host.open().unwrap();
    let channel = EventChannel::options().ucma(device).open().unwrap();
    let _ids = [GID, "fe80::3"].map(|text| {
        let id = channel.create_id(PortSpace::TCP).unwrap();
        let address = IbAddr::new(gid(text));
        id.bind(address.with_ip_service(PortSpace::TCP, 7471))
            .unwrap();
        id
    });
}

#[test]
fn a_free_port_is_not_reused_at_once() {
    let hosts = TwoHosts::new();
    let channel = hosts.channel();
    let port = || {
        let id = channel.create_id(PortSpace::TCP).unwrap();
        id.bind(IbAddr::new(gid(GID))).unwrap();
        id.local_port().unwrap()
    };
    let (first, second) = (port(), port());
    assert_eq!(second, first + 1);
}

#[test]
fn ipv6_addresses_need_an_interface() {
    let hosts = TwoHosts::new();
    let channel = hosts.channel();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    let local = |scope_id| SocketAddrV6::new("fe80::1".parse().unwrap(), 7, 0, scope_id);
    errno(id.bind(local(0)), libc::EINVAL);
    errno(id.bind(local(2)), libc::EADDRNOTAVAIL);
    let any = CmAddr::from((Ipv6Addr::UNSPECIFIED, 7));
    let id = channel.create_id(PortSpace::TCP).unwrap();
    id.bind(any).unwrap();
    assert_eq!(id.local_addr(), Ok(Some(any)));
}

#[test]
fn an_address_without_a_port_is_refused() {
    let hosts = TwoHosts::new();
    let channel = hosts.channel();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    errno(id.bind(IbAddr::new(gid(PEER))), libc::ENODEV);
    errno(id.bind(([10, 1, 0, 7], 7)), libc::EADDRNOTAVAIL);
    let other = IbAddr::new(gid(GID)).with_ip_service(PortSpace::UDP, 7);
    errno(id.bind(other), libc::EPROTONOSUPPORT);
    // It may try again.
    id.bind(IbAddr::new(gid(GID))).unwrap();
    let elsewhere = gid("fec0::9");
    let id = channel.create_id(PortSpace::TCP).unwrap();
    errno(
        id.resolve_addr(None, IbAddr::new(elsewhere), SECOND),
        libc::ENODEV,
    );
    errno(
        id.resolve_addr(None, IbAddr::new(gid(PEER)).with_pkey(0x1234), SECOND),
        libc::ENODEV,
    );
    let id = channel.create_id(PortSpace::TCP).unwrap();
    errno(
        id.resolve_addr(None, ([10, 1, 0, 7], 7), SECOND),
        libc::ENETUNREACH,
    );
}

#[test]
fn a_route_leads_to_another_host() {
    let hosts = TwoHosts::new();
    let channel = hosts.channel();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    let to = IbAddr::new(gid(PEER)).with_ip_service(PortSpace::TCP, 7471);
    id.resolve_addr(None, to, SECOND).unwrap();
    expect(&channel, EventKind::AddrResolved);
    errno(id.resolve_addr(None, to, SECOND), libc::EINVAL);
    assert_eq!(id.peer_addr().unwrap(), Some(to.into()));
    assert_eq!(id.gids().unwrap().source, gid(GID));
    assert!(id.path_records().unwrap().is_empty());
    id.resolve_route(SECOND).unwrap();
    expect(&channel, EventKind::RouteResolved);
    let paths = id.path_records().unwrap();
    let record = paths[0].record;
    assert_eq!(paths[0].flags, PathData::USABLE);
    assert_eq!((record.sgid, record.dgid), (gid(GID), gid(PEER)));
    assert_eq!((record.slid, record.dlid), (1, 2));
    assert_eq!(record.service_id, to.service_id);
    assert!(record.reversible);
    // Exactly 2048 bytes, 100 Gb/s and a second.
    let selectors = [
        record.mtu_selector,
        record.rate_selector,
        record.packet_life_time_selector,
    ];
    assert_eq!(selectors, [2; 3]);
    assert_eq!((record.mtu.number(), record.rate), (4, 0x10));
    assert_eq!(record.packet_life_time, 0x12);
    errno(id.resolve_route(SECOND), libc::EINVAL);
}

#[test]
fn an_absent_peer_is_a_route_error() {
    let hosts = TwoHosts::new();
    let channel = hosts.channel();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    let nobody = IbAddr::new(gid("fe80::9"));
    id.resolve_addr(None, nobody, SECOND).unwrap();
    expect(&channel, EventKind::AddrResolved);
    for _ in 0..2 {
        id.resolve_route(SECOND).unwrap();
        let event = channel.next_event(SECOND).unwrap();
        let failure = event.failure().unwrap();
        assert_eq!(failure.raw_os_error(), Some(libc::EINVAL));
        assert!(failure.to_string().contains("no path"), "{failure}");
    }
}

#[test]
fn a_silent_administrator_takes_the_whole_timeout() {
    let hosts = TwoHosts::new();
    let channel = hosts.channel();
    let id = resolved(&channel);
    hosts.fabric.set_subnet_admin(SubnetAdmin::Silent);
    let timeout = Duration::from_secs(7);
    let begun = channel.now();
    id.resolve_route(timeout).unwrap();
    assert!(channel.try_next_event().unwrap().is_none());
    let event = channel.next_event(None).unwrap();
    assert_eq!(channel.now() - begun, timeout);
    let failure = event.failure().unwrap();
    assert_eq!(event.kind(), EventKind::RouteError);
    assert_eq!(failure.raw_os_error(), Some(libc::ETIMEDOUT));
}

#[test]
fn an_ib_path_replaces_the_query() {
    let hosts = TwoHosts::new();
    let channel = hosts.channel();
    let asked = resolved(&channel);
    asked.resolve_route(SECOND).unwrap();
    expect(&channel, EventKind::RouteResolved);
    let path = asked.path_records().unwrap()[0];
    hosts.fabric.set_subnet_admin(SubnetAdmin::Silent);
    let id = resolved(&channel);
    let unusable = PathData {
        flags: PathFlags::GMP,
        ..path
    };
    errno(id.set_ib_path(&[unusable]), libc::EINVAL);
    id.set_ib_path(&[unusable, path]).unwrap();
    expect(&channel, EventKind::RouteResolved);
    assert_eq!(&*id.path_records().unwrap(), [path]);
    errno(id.set_ib_path(&[path]), libc::EINVAL);
    let unbound = channel.create_id(PortSpace::TCP).unwrap();
    errno(unbound.set_ib_path(&[path]), libc::EINVAL);
}

#[test]
fn the_loopback_gid_is_the_first_active_port() {
    let fabric = Fabric::new();
    let adapter = Adapter::infiniband("mlx5_0")
        .port(Port::new(gid("fe80::a")).down())
        .port(Port::new(gid(GID)));
    let device = fabric.host([adapter]).open().unwrap();
    let channel = EventChannel::options().ucma(device).open().unwrap();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    id.resolve_addr(None, IbAddr::new(Gid::LOOPBACK), SECOND)
        .unwrap();
    expect(&channel, EventKind::AddrResolved);
    assert_eq!(id.addresses().unwrap().port_number, 2);
    id.resolve_route(SECOND).unwrap();
    expect(&channel, EventKind::RouteResolved);
    let record = id.path_records().unwrap()[0].record;
    assert_eq!((record.sgid, record.dgid), (gid(GID), gid(GID)));
}
