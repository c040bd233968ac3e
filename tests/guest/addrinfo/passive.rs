//! Addresses to listen on.

use rdmacm_addrinfo::{AddrInfo, AddrInfoResolver, Hints, Step};
use rdmacm_core::{CmAddr, Family, PortSpace};
use rdmacm_tests::{PLAIN, Site, free_port};

use super::{assert_explained, only, rc, refusal, resolve};
use rdmacm_tests_macros::case;

fn passive() -> Hints {
    rc().passive()
}

#[track_caller]
fn via_the_device(site: &Site, info: &AddrInfo) {
    let device_port = info.device_port().unwrap();
    assert_eq!(device_port.rdma_device().unwrap().name, site.device);
}

#[case(each_abi)]
fn an_address_is_the_source(site: &Site) {
    for ip in site.ips() {
        let found = resolve(site, ip.to_string().as_str(), "7471", &passive());
        let info = only(found);
        assert_eq!(info.source, Some(CmAddr::from((ip, 7471))));
        via_the_device(site, &info);
    }
}

#[case(each_abi)]
fn the_device_is_known_and_no_destination(site: &Site) {
    let v4 = site.v4.to_string();
    let info = only(resolve(site, v4.as_str(), "7471", &passive()));
    assert_eq!(info.destination, None);
    let route = info.route.unwrap();
    assert_eq!(route.path_records, []);
    let device_port = route.device_port.unwrap();
    assert_eq!(device_port.port, 1);
    assert_eq!(device_port.destination_gid, None);
}

#[case(each_abi)]
fn a_wildcard_belongs_to_every_device(site: &Site) {
    for (node, family) in [("0.0.0.0", Family::V4), ("::", Family::V6)] {
        let info = only(resolve(site, node, "7471", &passive()));
        assert_eq!(info.source, Some(CmAddr::any(family).with_port(7471)));
        assert_eq!(info.route.unwrap().device_port, None);
    }
}

#[case(each_abi)]
fn without_a_node_both_wildcards(site: &Site) {
    let found = resolve(site, None, "7471", &passive()).unwrap();
    let sources: Vec<_> = found.iter().map(|info| info.source.unwrap()).collect();
    let any = |family| CmAddr::any(family).with_port(7471);
    assert_eq!(sources, [any(Family::V4), any(Family::V6)]);
    assert!(found.iter().all(AddrInfo::is_reachable));
}

#[case(each_abi)]
fn loopback_is_a_wildcard_to_the_kernel(site: &Site) {
    let info = only(resolve(site, "127.0.0.1", "7471", &passive()));
    assert_eq!(info.route.unwrap().device_port, None);
}

#[case(each_abi)]
fn an_address_in_the_hints_takes_the_services_port(site: &Site) {
    let hints = passive().source(site.v4(1));
    let info = only(resolve(site, None, "7471", &hints));
    assert_eq!(info.source, Some(site.v4(7471)));
    via_the_device(site, &info);
    let unchanged = only(resolve(site, None, None, &hints));
    assert_eq!(unchanged.source, Some(site.v4(1)));
}

#[case(each_abi)]
fn a_port_a_server_listens_on(site: &Site) {
    let port = free_port();
    let channel = site.channel();
    let server = channel.create_id(PortSpace::TCP).unwrap();
    server.bind(site.v4(port)).unwrap();
    server.listen(1).unwrap();
    let v4 = site.v4.to_string();
    let info = only(resolve(
        site,
        v4.as_str(),
        port.to_string().as_str(),
        &passive(),
    ));
    assert_eq!(info.source, Some(site.v4(port)));
    via_the_device(site, &info);
}

#[case(each_abi)]
fn an_address_no_rdma_device_serves(site: &Site) {
    let plain = PLAIN.to_string();
    let unreachable = refusal(resolve(site, plain.as_str(), "7471", &passive()));
    assert_explained(&unreachable, Step::Bind, "no RDMA device serves it");
}

#[case(each_abi)]
fn an_address_this_machine_does_not_have(site: &Site) {
    let unreachable = refusal(resolve(site, "198.51.100.7", "7471", &passive()));
    assert_explained(
        &unreachable,
        Step::Bind,
        "no network interface here has this address",
    );
}

fn sources(found: &[AddrInfo]) -> Vec<CmAddr> {
    found.iter().map(|info| info.source.unwrap()).collect()
}

/// The link-local address is among them, with its scope.
#[track_caller]
fn are_the_devices(site: &Site, found: &[AddrInfo]) {
    let sources = sources(found);
    for ip in site.ips() {
        assert!(sources.contains(&CmAddr::from((ip, 7471))), "{sources:?}");
    }
    let scope = nix::net::if_::if_nametoindex(site.netdev).unwrap();
    let link_local = site.link_local(scope).with_port(7471);
    assert!(sources.contains(&link_local), "{sources:?}");
    assert_eq!(sources.len(), 3);
    for info in found {
        via_the_device(site, info);
    }
}

#[case(each_abi)]
fn an_interface_gives_its_addresses(site: &Site) {
    let found = resolve(site, site.netdev, "7471", &passive()).unwrap();
    are_the_devices(site, &found);
    let v4 = passive().family(Family::V4);
    let info = only(resolve(site, site.netdev, "7471", &v4));
    assert_eq!(info.source, Some(site.v4(7471)));
}

#[case(each_abi)]
fn a_device_gives_its_addresses(site: &Site) {
    let found = resolve(site, site.device, "7471", &passive()).unwrap();
    are_the_devices(site, &found);
}

#[case(each_abi)]
fn an_interface_without_rdma_is_reported(site: &Site) {
    let v4 = passive().family(Family::V4);
    let unreachable = refusal(resolve(site, "plain0", "7471", &v4));
    assert_explained(&unreachable, Step::Bind, "no RDMA device serves it");
}

#[case(each_abi)]
fn every_local_rdma_address(site: &Site) {
    let found = AddrInfoResolver::new().local("7471", &rc()).unwrap();
    let of_the_device: Vec<_> = found
        .iter()
        .filter(|info| info.device_port().unwrap().rdma_device().unwrap().name == site.device)
        .cloned()
        .collect();
    are_the_devices(site, &of_the_device);
    let plain = CmAddr::from((PLAIN, 7471));
    assert!(!sources(&found).contains(&plain));
}
