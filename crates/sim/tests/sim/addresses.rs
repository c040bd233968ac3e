//! IP addresses: binding, resolving and what queries return.

use rdmacm_core::{
    AddressAbi, CmAddr, EventChannel, EventKind, Family, Gid, PathData, PathFlags, PathMtu,
    PortSpace, RdmaDevices, Transport,
};
use rdmacm_sim::{Adapter, Fabric, KernelVersion};
use std::net::SocketAddrV6;
use std::sync::Arc;

use crate::pair::{Hosts, PORT};
use crate::{SECOND, errno, expect};

#[test]
fn an_address_is_bound_to_the_device_that_has_it() {
    let fabric = Fabric::new();
    let host = fabric.host([
        Adapter::roce("rxe0").address([10, 1, 0, 7]),
        Adapter::iwarp("siw0").address([10, 2, 0, 7]),
    ]);
    let channel = host.channel().unwrap();
    for (address, name, transport) in [
        ([10, 1, 0, 7], "rxe0", Transport::RoCE),
        ([10, 2, 0, 7], "siw0", Transport::IWarp),
    ] {
        let id = channel.create_id(PortSpace::TCP).unwrap();
        id.bind((address, PORT)).unwrap();
        let device = id.addresses().unwrap().device.unwrap();
        let device = host.look_up(device).unwrap();
        assert_eq!((device.name.as_str(), device.transport), (name, transport));
        errno(id.bind((address, PORT)), libc::EINVAL);
    }
    let names = host.list().unwrap();
    let names: Vec<_> = names.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["rxe0", "siw0"]);
    assert!(host.infiniband_ports().unwrap().is_empty());
    let id = channel.create_id(PortSpace::TCP).unwrap();
    errno(id.bind(([10, 3, 0, 7], PORT)), libc::EADDRNOTAVAIL);
    id.bind(CmAddr::any(Family::V4)).unwrap();
    assert_eq!(id.addresses().unwrap().device, None);
}

#[test]
fn ports_clash_unless_they_are_shared() {
    for hosts in Hosts::each() {
        let channel = hosts.server.channel().unwrap();
        let create = || channel.create_id(PortSpace::TCP).unwrap();
        let first = create();
        first.set_reuse_addr(true).unwrap();
        first.bind(hosts.address()).unwrap();
        errno(create().bind(hosts.address()), libc::EADDRINUSE);
        let any = CmAddr::any(Family::V4).with_port(PORT);
        errno(create().bind(any), libc::EADDRNOTAVAIL);
        let shared = create();
        shared.set_reuse_addr(true).unwrap();
        shared.bind(hosts.address()).unwrap();
        // A listener shares its port with nobody.
        errno(shared.listen(1), libc::EADDRINUSE);
        drop(first);
        shared.listen(1).unwrap();
        errno(shared.set_reuse_addr(true), libc::EINVAL);
        // Each port space has its own ports.
        let datagrams = channel.create_id(PortSpace::UDP).unwrap();
        datagrams.bind(hosts.address()).unwrap();
    }
}

#[test]
fn one_port_serves_both_wildcards_if_one_is_for_ipv6_only() {
    let hosts = Hosts::roce();
    let channel = hosts.server.channel().unwrap();
    let v6 = channel.create_id(PortSpace::TCP).unwrap();
    v6.bind(CmAddr::any(Family::V6).with_port(PORT)).unwrap();
    let v4 = channel.create_id(PortSpace::TCP).unwrap();
    let any = CmAddr::any(Family::V4).with_port(PORT);
    errno(v4.bind(any), libc::EADDRNOTAVAIL);
    v6.set_af_only(true).unwrap();
    v4.bind(any).unwrap();
    v4.listen(1).unwrap();
    v6.listen(1).unwrap();
    errno(v6.set_af_only(false), libc::EINVAL);
}

#[test]
fn gids_are_those_of_the_transport() {
    for hosts in Hosts::each() {
        let channel = hosts.client.channel().unwrap();
        let id = hosts.routed(&channel);
        let gids = id.gids().unwrap();
        let mapped = |text: &str| text.parse::<Gid>().unwrap();
        if hosts.is_iwarp {
            assert_ne!(gids.source, mapped("::ffff:10.0.0.1"));
            assert!(id.path_records().unwrap().is_empty());
        } else {
            assert_eq!(gids.source, mapped("::ffff:10.0.0.1"));
            assert_eq!(gids.destination, Some(mapped("::ffff:10.0.0.2")));
        }
        assert_eq!(id.addresses().unwrap().pkey, 0);
        assert_eq!(id.addresses().unwrap().port_number, 1);
    }
}

#[test]
fn a_path_of_roce_follows_from_the_interface() {
    for (version, life_time) in [(KernelVersion::Linux7_3, 16), (KernelVersion::Linux6_1, 18)] {
        let mut hosts = Hosts::roce();
        hosts.client = hosts.client.kernel_version(version);
        let channel = hosts.client.channel().unwrap();
        let id = hosts.routed(&channel);
        let path = id.path_records().unwrap()[0];
        assert_eq!(path.flags, PathData::USABLE);
        let record = path.record;
        assert_eq!((record.mtu, record.pkey), (PathMtu::B1024, 0xffff));
        assert_eq!((record.hop_limit, record.rate), (64, 0));
        assert_eq!(record.packet_life_time, life_time);
        assert_ne!(record.flow_label, 0);
    }
    let hosts = Hosts::roce();
    let channel = hosts.client.channel().unwrap();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    id.set_tos(0x20).unwrap();
    id.set_ack_timeout(19).unwrap();
    id.resolve_addr(None, hosts.address(), SECOND).unwrap();
    expect(&channel, EventKind::AddrResolved);
    id.resolve_route(SECOND).unwrap();
    expect(&channel, EventKind::RouteResolved);
    let record = id.path_records().unwrap()[0].record;
    assert_eq!((record.traffic_class, record.packet_life_time), (0x20, 18));
}

#[test]
fn commands_for_ip_addresses_only_do_the_same() {
    for hosts in Hosts::each() {
        let options = EventChannel::options().ucma(hosts.client.open().unwrap());
        let options = options.devices(Arc::new(hosts.client.clone()));
        let channel = options.address_abi(AddressAbi::IpOnly).open().unwrap();
        let id = channel.create_id(PortSpace::TCP).unwrap();
        id.bind((hosts.client.address().unwrap(), 0)).unwrap();
        id.resolve_addr(None, hosts.address(), SECOND).unwrap();
        expect(&channel, EventKind::AddrResolved);
        id.resolve_route(SECOND).unwrap();
        expect(&channel, EventKind::RouteResolved);
        assert_eq!(id.peer_addr().unwrap(), Some(hosts.address().into()));
        let paths = id.path_records().unwrap();
        assert_eq!(paths.len(), hosts.choose(1, 0));
        for path in &*paths {
            assert_eq!(path.flags, PathFlags::empty());
            assert_eq!(
                (path.record.mtu, path.record.hop_limit),
                (PathMtu::B1024, 64)
            );
        }
        let gids = id.gids().unwrap();
        let other = hosts.client.channel().unwrap();
        assert_eq!(gids, hosts.routed(&other).gids().unwrap());
    }
}

#[test]
fn an_address_resolves_once() {
    for hosts in Hosts::each() {
        hosts.fabric.set_delay(SECOND / 10);
        let channel = hosts.client.channel().unwrap();
        let id = channel.create_id(PortSpace::TCP).unwrap();
        id.resolve_addr(None, hosts.address(), SECOND).unwrap();
        errno(id.resolve_addr(None, hosts.address(), SECOND), libc::EINVAL);
        errno(id.resolve_route(SECOND), libc::EINVAL);
        expect(&channel, EventKind::AddrResolved);
        errno(id.listen(1), libc::EINVAL);
        id.resolve_route(SECOND).unwrap();
        expect(&channel, EventKind::RouteResolved);
        errno(id.resolve_route(SECOND), libc::EINVAL);
    }
}

#[test]
fn addresses_of_ipv6_resolve_too() {
    for hosts in Hosts::each() {
        let v6 = hosts.server.addresses()[1];
        assert!(v6.is_ipv6());
        let channel = hosts.client.channel().unwrap();
        let id = channel.create_id(PortSpace::TCP).unwrap();
        id.resolve_addr(None, (v6, PORT), SECOND).unwrap();
        expect(&channel, EventKind::AddrResolved);
        let source = id.local_addr().unwrap().unwrap();
        assert_eq!(source.family(), Family::V6);
        let id = channel.create_id(PortSpace::TCP).unwrap();
        let local = SocketAddrV6::new("fe80::2".parse().unwrap(), PORT, 0, 0);
        errno(id.bind(local), libc::EINVAL);
    }
}

#[test]
fn an_address_without_a_host_times_out() {
    let hosts = Hosts::roce();
    let channel = hosts.client.channel().unwrap();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    let begun = channel.now();
    id.resolve_addr(None, ([192, 0, 2, 1], 7), SECOND).unwrap();
    expect(&channel, EventKind::AddrError);
    assert_eq!(channel.now() - begun, SECOND);
}

#[test]
fn the_loopback_address_has_no_route() {
    let hosts = Hosts::roce();
    let channel = hosts.client.channel().unwrap();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    id.resolve_addr(None, ([127, 0, 0, 1], 7), SECOND).unwrap();
    expect(&channel, EventKind::AddrResolved);
    errno(id.resolve_route(SECOND), libc::ENODEV);
    let hosts = Hosts::iwarp();
    let channel = hosts.client.channel().unwrap();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    errno(
        id.resolve_addr(None, ([127, 0, 0, 1], 7), SECOND),
        libc::EINVAL,
    );
}
