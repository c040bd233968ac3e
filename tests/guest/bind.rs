//! Binding: valid and invalid addresses.

use std::net::Ipv4Addr;

use rdmacm_core::{AddressAbi, CmAddr, Error, Family, IbAddr, PortSpace};
use rdmacm_tests::{PLAIN, Site, free_port};
use rdmacm_tests_macros::case;

/// The error of a bind: its number and text.
fn refusal(site: &Site, address: impl Into<CmAddr>) -> (i32, String) {
    let (_channel, id) = site.id();
    let error = id.bind(address).unwrap_err();
    (error.raw_os_error().unwrap(), error.to_string())
}

#[case(each_abi, covers(BIND_IP, BIND))]
fn binding_a_local_address_selects_its_device(site: &Site) {
    let (_channel, id) = site.id();
    let port = free_port();
    id.bind(site.v4(port)).unwrap();
    let addresses = id.addresses().unwrap();
    assert_eq!(addresses.source, Some(site.v4(port)));
    assert_eq!(addresses.destination, None);
    assert_eq!(addresses.port_number, 1);
    let device = addresses.device.unwrap().look_up().unwrap();
    assert_eq!(device.name, site.device);
    assert_eq!(id.local_port(), Ok(port));
    assert_eq!(id.peer_port(), Ok(0));
}

#[case(each_abi)]
fn binding_an_ipv6_address_selects_its_device(site: &Site) {
    let (_channel, id) = site.id();
    let port = free_port();
    id.bind(site.v6(port)).unwrap();
    let addresses = id.addresses().unwrap();
    assert_eq!(addresses.source, Some(site.v6(port)));
    let device = addresses.device.unwrap().look_up().unwrap();
    assert_eq!(device.name, site.device);
}

#[case(each_abi)]
fn a_wildcard_has_no_device(site: &Site) {
    for family in [Family::V4, Family::V6] {
        let (_channel, id) = site.id();
        let address = CmAddr::any(family).with_port(free_port());
        id.bind(address).unwrap();
        let addresses = id.addresses().unwrap();
        assert_eq!(addresses.source, Some(address));
        assert_eq!(addresses.device, None);
        assert_eq!(addresses.port_number, 0);
    }
}

#[case(each_abi)]
fn loopback_binds_as_the_wildcard(site: &Site) {
    let (_channel, id) = site.id();
    id.bind((Ipv4Addr::LOCALHOST, free_port())).unwrap();
    assert_eq!(id.addresses().unwrap().device, None);
}

#[case(each_abi)]
fn port_zero_is_an_ephemeral_port(site: &Site) {
    let (_channel, id) = site.id();
    id.bind(site.v4(0)).unwrap();
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let limits: Vec<u16> = range
        .split_whitespace()
        .map(|limit| limit.parse().unwrap())
        .collect();
    assert!((limits[0]..=limits[1]).contains(&id.local_port().unwrap()));
}

#[case(each_abi)]
fn a_remote_address_fails_with_eaddrnotavail(site: &Site) {
    let (errno, words) = refusal(site, ([198, 51, 100, 7], free_port()));
    assert_eq!(errno, libc::EADDRNOTAVAIL);
    assert!(
        words.contains("no network interface here has this address"),
        "{words}"
    );
}

#[case(each_abi)]
fn an_address_without_rdma_has_no_device(site: &Site) {
    let (errno, words) = refusal(site, (PLAIN, free_port()));
    assert_eq!(errno, libc::ENODEV);
    assert!(words.contains("no RDMA device serves it"), "{words}");
}

#[case(each_abi)]
fn a_second_bind_is_refused(site: &Site) {
    let (_channel, id) = site.id();
    id.bind(site.v4(0)).unwrap();
    let error = id.bind(site.v4(0)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    assert!(error.to_string().contains("bound already"), "{error}");
}

#[case(each_abi)]
fn a_port_in_use_is_refused(site: &Site) {
    let port = free_port();
    let (channel, holder) = site.id();
    holder.bind(site.v4(port)).unwrap();
    let late = channel.create_id(PortSpace::TCP).unwrap();
    let error = late.bind(site.v4(port)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EADDRINUSE));
    drop(holder);
    late.bind(site.v4(port)).unwrap();
}

#[case(each_abi)]
fn the_wildcard_cannot_bind_a_port_in_use(site: &Site) {
    let port = free_port();
    let (channel, holder) = site.id();
    holder.bind(site.v4(port)).unwrap();
    let late = channel.create_id(PortSpace::TCP).unwrap();
    let error = late.bind((Ipv4Addr::UNSPECIFIED, port)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EADDRNOTAVAIL));
    assert!(error.to_string().contains("wildcard"), "{error}");
}

#[case(each_abi)]
fn a_link_local_address_with_its_scope_works(site: &Site) {
    let (_channel, id) = site.id();
    id.bind(site.link_local(site.scope_id())).unwrap();
    let device = id.addresses().unwrap().device.unwrap();
    assert_eq!(device.look_up().unwrap().name, site.device);
}

#[case(each_abi)]
fn a_link_local_address_without_scope_is_explained(site: &Site) {
    let (errno, words) = refusal(site, site.link_local(0));
    assert_eq!(errno, libc::EINVAL);
    assert!(words.contains("needs a scope id"), "{words}");
}

#[case(each_abi)]
fn a_link_local_address_with_a_wrong_scope_is_explained(site: &Site) {
    let (errno, words) = refusal(site, site.link_local(4_000));
    assert_eq!(errno, libc::ENODEV);
    assert!(words.contains("no interface has this scope id"), "{words}");
}

#[case(each_abi)]
fn a_scope_without_rdma_is_explained(site: &Site) {
    let plain = nix::net::if_::if_nametoindex("plain0").unwrap();
    let (errno, words) = refusal(site, site.link_local(plain));
    assert!(
        [libc::ENODEV, libc::EADDRNOTAVAIL].contains(&errno),
        "{words}"
    );
    assert!(
        words.contains("no RDMA device serves the address there"),
        "{words}"
    );
}

#[case(each_abi)]
fn a_bound_id_has_the_gid_of_its_port_and_no_peers(site: &Site) {
    for address in [site.v4(0), site.v6(0)] {
        let (_channel, id) = site.id();
        id.bind(address).unwrap();
        let gids = id.gids().unwrap();
        assert_ne!(gids.source, rdmacm_core::Gid::UNSPECIFIED);
        assert_eq!(gids.destination, None);
        assert_eq!(id.peer_addr(), Ok(None));
    }
}

#[case(each_abi)]
fn an_infiniband_address_needs_infiniband(site: &Site) {
    let (_channel, id) = site.id();
    let address = IbAddr::new(site.v6.into()).with_ip_service(PortSpace::TCP, 0);
    let error = id.bind(address).unwrap_err();
    match site.abi {
        AddressAbi::AnyFamily => assert_eq!(error.raw_os_error(), Some(libc::ENODEV)),
        AddressAbi::IpOnly => {
            assert!(matches!(error, Error::InvalidInput { .. }), "{error}");
            id.bind(site.v4(0)).unwrap();
        }
    }
}
