//! The contents of an entry that RDMA reaches.

use std::fs;
use std::net::Ipv6Addr;

use rdmacm_addrinfo::AddrInfoFlags;
use rdmacm_core::{
    AddressAbi, CmAddr, Family, Gid, PathFlags, PathMtu, PortSpace, QpType, Transport,
};
use rdmacm_tests::{Site, Soft};

use super::{only, rc, resolve};
use rdmacm_tests_macros::case;

#[case(each_abi)]
fn numeric_addresses_are_reachable(site: &Site) {
    for ip in site.ips() {
        let info = only(resolve(site, ip.to_string().as_str(), "7471", &rc()));
        assert!(info.is_reachable(), "{info}");
        assert_eq!(info.destination, Some(CmAddr::from((ip, 7471))));
    }
}

#[case(each_abi)]
fn the_result_has_its_port_space_and_qp_type(site: &Site) {
    let v6 = site.v6.to_string();
    let info = only(resolve(site, v6.as_str(), "7471", &rc().numeric_host()));
    assert_eq!(info.flags, AddrInfoFlags::NUMERICHOST);
    assert_eq!(info.family, Family::V6);
    assert_eq!(
        (info.port_space, info.qp_type),
        (PortSpace::TCP, QpType::RC)
    );
    assert_eq!(info.canonical_name, None);
}

#[case(each_abi)]
fn the_kernel_chooses_the_source_with_port_0(site: &Site) {
    for ip in site.ips() {
        let info = only(resolve(site, ip.to_string().as_str(), "7471", &rc()));
        assert_eq!(info.source, Some(CmAddr::from((ip, 0))));
    }
}

#[case(each_abi)]
fn without_a_service_the_port_is_0(site: &Site) {
    let v4 = site.v4.to_string();
    let info = only(resolve(site, v4.as_str(), None, &rc()));
    assert!(info.is_reachable(), "{info}");
    assert_eq!(info.destination, Some(site.v4(0)));
}

#[case(each_abi)]
fn the_device_is_the_one_sysfs_knows(site: &Site) {
    let v4 = site.v4.to_string();
    let info = only(resolve(site, v4.as_str(), "7471", &rc()));
    let device_port = info.device_port().unwrap();
    let device = device_port.rdma_device().unwrap();
    assert_eq!(device.name, site.device);
    assert_eq!(
        device_port.device.guid.to_string(),
        sysfs(site, "node_guid")
    );
    assert!(device_port.device.index.is_some());
    assert_eq!(device_port.port, 1);
    let transport = match site.soft {
        Soft::Rxe => Transport::RoCE,
        Soft::Siw => Transport::IWarp,
    };
    assert_eq!(device.transport, transport);
}

/// RoCE v2 derives a GID from the address; iWARP has one GID, derived from the MAC
/// address.
#[case(each_abi)]
fn gids_of_the_ipv4_address(site: &Site) {
    gids_are(site, &site.v4.to_string(), site.v4.to_ipv6_mapped());
}

#[case(each_abi)]
fn gids_of_the_ipv6_address(site: &Site) {
    gids_are(site, &site.v6.to_string(), site.v6);
}

fn gids_are(site: &Site, node: &str, on_roce: Ipv6Addr) {
    let gid = match site.soft {
        Soft::Rxe => Gid(on_roce.octets()),
        Soft::Siw => {
            let first: Ipv6Addr = sysfs(site, "ports/1/gids/0").parse().unwrap();
            Gid(first.octets())
        }
    };
    let info = only(resolve(site, node, "7471", &rc()));
    let device_port = info.device_port().unwrap();
    assert_eq!(device_port.source_gid, gid);
    assert_eq!(device_port.destination_gid, Some(gid));
}

#[case(each_abi)]
fn roce_has_one_path_record_and_iwarp_none(site: &Site) {
    let v4 = site.v4.to_string();
    let route = only(resolve(site, v4.as_str(), "7471", &rc()))
        .route
        .unwrap();
    if site.soft == Soft::Siw {
        assert_eq!(route.path_records, []);
        return;
    }
    let device_port = route.device_port.unwrap();
    let [path] = route.path_records.as_slice() else {
        panic!("{:?}", route.path_records);
    };
    assert_eq!(path.record.sgid, device_port.source_gid);
    assert_eq!(Some(path.record.dgid), device_port.destination_gid);
    assert_eq!(path.record.pkey, 0xffff);
    assert_eq!(path.record.mtu, PathMtu::B1024);
    // The older query does not report the purpose of a path.
    let flags = match site.abi {
        AddressAbi::AnyFamily => PathFlags::from_bits_retain(43),
        AddressAbi::IpOnly => PathFlags::empty(),
    };
    assert_eq!(path.flags, flags);
}

#[case(each_abi)]
fn no_route_leaves_out_the_path_record_only(site: &Site) {
    let v4 = site.v4.to_string();
    let mut routed = only(resolve(site, v4.as_str(), "7471", &rc()));
    let unrouted = only(resolve(site, v4.as_str(), "7471", &rc().no_route()));
    routed.flags = AddrInfoFlags::NOROUTE;
    routed.route.as_mut().unwrap().path_records.clear();
    assert_eq!(unrouted, routed);
}

fn sysfs(site: &Site, file: &str) -> String {
    let path = format!("/sys/class/infiniband/{}/{file}", site.device);
    fs::read_to_string(path).unwrap().trim().to_owned()
}
