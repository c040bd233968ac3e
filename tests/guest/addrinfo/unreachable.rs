//! Addresses that RDMA does not reach, and the errors for them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rdmacm_addrinfo::{Reason, Step, Unreachable};
use rdmacm_core::CmAddr;
use rdmacm_tests::{PLAIN, Site, UNROUTABLE};

use super::{assert_explained, only, rc, refusal, resolve};
use rdmacm_tests_macros::case;

const LOOPBACKS: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];

#[case(each_abi)]
fn an_interface_without_rdma(site: &Site) {
    let plain = PLAIN.to_string();
    let unreachable = refusal(resolve(site, plain.as_str(), "7471", &rc()));
    assert_explained(&unreachable, Step::Address, "no RDMA device");
}

#[case(each_abi)]
fn no_route(site: &Site) {
    let unroutable = UNROUTABLE.to_string();
    let unreachable = refusal(resolve(site, unroutable.as_str(), "7471", &rc()));
    assert_explained(&unreachable, Step::Address, "no route leads there");
}

/// The kernel fails to resolve the route, or the address if the first device is iWARP.
#[case(each_abi)]
fn loopback(site: &Site) {
    for ip in LOOPBACKS {
        says_loopback(&refusal(resolve(
            site,
            ip.to_string().as_str(),
            "7471",
            &rc(),
        )));
    }
}

/// The kernel never reports it.
#[case(each_abi)]
fn loopback_when_routes_are_left_out(site: &Site) {
    let hints = rc().no_route();
    for node in ["127.0.0.1", "::1", "0.0.0.0", "::"] {
        let info = only(resolve(site, node, "7471", &hints));
        assert_eq!(info.source, None);
        let unreachable = info.route.unwrap_err();
        assert_eq!(unreachable.reason, Reason::Loopback);
        says_loopback(&unreachable);
    }
}

#[case(each_abi)]
fn a_service_alone_is_loopback(site: &Site) {
    let found = resolve(site, None, "7471", &rc()).unwrap();
    for (info, ip) in found.iter().zip(LOOPBACKS.iter().rev()) {
        assert_eq!(info.destination, Some(CmAddr::from((*ip, 7471))));
        says_loopback(info.route.as_ref().unwrap_err());
    }
    assert_eq!(found.len(), LOOPBACKS.len());
}

#[case(each_abi)]
fn unreachable_entries_have_no_route(site: &Site) {
    let unroutable = UNROUTABLE.to_string();
    let info = only(resolve(site, unroutable.as_str(), "7471", &rc()));
    assert_eq!(info.destination, Some(CmAddr::from((UNROUTABLE, 7471))));
    assert_eq!(info.source, None);
    assert_eq!(info.device_port(), None);
}

#[track_caller]
fn says_loopback(unreachable: &Unreachable) {
    let words = unreachable.to_string();
    assert!(words.contains("loopback address"), "{words}");
}
