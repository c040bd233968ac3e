//! Addresses as a program handles them.
#![cfg(test)]

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use rdmacm_core::{CmAddr, Family, Gid, IbAddr};

fn v4(text: &str) -> CmAddr {
    CmAddr::V4(text.parse().unwrap())
}

fn v6(text: &str, scope_id: u32) -> CmAddr {
    let ip: Ipv6Addr = text.parse().unwrap();
    SocketAddrV6::new(ip, 7, 0, scope_id).into()
}

fn ib(text: &str) -> IbAddr {
    IbAddr::new(text.parse().unwrap())
}

#[test]
fn families_have_names() {
    let names = [Family::V4, Family::V6, Family::Ib].map(|family| family.to_string());
    assert_eq!(names, ["IPv4", "IPv6", "InfiniBand"]);
}

#[test]
fn a_wildcard_of_each_family_is_unspecified_and_no_other_address_is() {
    for family in [Family::V4, Family::V6, Family::Ib] {
        let any = CmAddr::any(family);
        assert_eq!((any.family(), any.port()), (family, 0));
        assert!(any.is_unspecified() && !any.is_loopback(), "{any}");
    }
    for address in [v4("10.0.0.1:7"), v6("fd00::1", 0), ib("fe80::1").into()] {
        assert!(!address.is_unspecified(), "{address}");
    }
}

#[test]
fn loopback_addresses_are_recognized() {
    for address in [v4("127.0.0.9:7"), v6("::1", 0), ib("::1").into()] {
        assert!(address.is_loopback(), "{address}");
    }
    for address in [v4("10.0.0.1:7"), v6("fd00::1", 0), ib("fe80::1").into()] {
        assert!(!address.is_loopback(), "{address}");
    }
}

#[test]
fn only_ipv6_has_link_local_addresses_with_a_scope() {
    let local = v6("fe80::1", 3);
    assert!(local.is_link_local());
    assert_eq!(
        (local.scope_id(), local.host().to_string()),
        (3, "fe80::1%3".into())
    );
    for address in [v4("169.254.0.1:7"), v6("fd00::1", 0), ib("fe80::1").into()] {
        assert!(!address.is_link_local(), "{address}");
        assert_eq!(address.scope_id(), 0);
    }
}

#[test]
fn the_same_host_is_the_same_whatever_the_port() {
    let native = CmAddr::from(ib("fe80::1").with_pkey(0x8001));
    let hosts = [
        v4("10.0.0.1:7"),
        v4("10.0.0.2:7"),
        v6("fe80::1", 2),
        v6("fe80::1", 3),
        v6("fe80::2", 2),
        native,
        ib("fe80::1").with_pkey(0x8002).into(),
        ib("fe80::2").with_pkey(0x8001).into(),
    ];
    for (at, one) in hosts.iter().enumerate() {
        for (other_at, other) in hosts.iter().enumerate() {
            let same = one.is_same_host(&other.with_port(99));
            assert_eq!(same, at == other_at, "{one} and {other}");
        }
    }
}

#[test]
fn an_ip_address_is_had_where_there_is_one() {
    let address = v4("10.0.0.1:7");
    assert_eq!(address.ip(), Some(Ipv4Addr::new(10, 0, 0, 1).into()));
    let socket: SocketAddr = ([10, 0, 0, 1], 7).into();
    assert_eq!(address.socket_addr(), Some(socket));
    assert_eq!(CmAddr::from(ib("fe80::1")).ip(), None);
}

#[test]
fn an_ib_address_keeps_its_flow_on_the_way_from_ipv6() {
    let flow = 0x12345_u32.to_be();
    let socket = SocketAddrV6::new(Ipv6Addr::LOCALHOST, 7, flow, 0);
    let address = IbAddr::from_v6(socket, rdmacm_core::PortSpace::TCP);
    assert_eq!((address.flow_info, address.gid), (0x12345, Gid::LOOPBACK));
}

#[test]
fn a_service_of_any_port_is_any_port() {
    let gid: Gid = "fe80::1".parse().unwrap();
    let address = CmAddr::from(IbAddr::new(gid)).with_port(0x1234);
    assert_eq!(address.port(), 0x1234);
    assert_eq!(v6("fd00::1", 0).with_port(9).port(), 9);
}
