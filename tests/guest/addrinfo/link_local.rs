//! Link-local IPv6 addresses, which need an interface.

use rdmacm_addrinfo::{Error, NameError, Reason, Step};
use rdmacm_core::CmAddr;
use rdmacm_tests::Site;

use super::{assert_explained, only, rc, refusal, resolve};
use rdmacm_tests_macros::case;

/// The device's numeric link-local address without a scope.
fn figures(site: &Site) -> String {
    site.link_local(0).ip().unwrap().to_string()
}

#[case(each_abi)]
fn a_scope_by_name(site: &Site) {
    let node = format!("{}%{}", figures(site), site.netdev);
    is_reached(site, &node);
}

#[case(each_abi)]
fn a_scope_by_number(site: &Site) {
    let node = format!("{}%{}", figures(site), site.scope_id());
    is_reached(site, &node);
}

fn is_reached(site: &Site, node: &str) {
    let info = only(resolve(site, node, "7471", &rc()));
    let destination = site.link_local(site.scope_id()).with_port(7471);
    assert_eq!(info.destination, Some(destination));
    let device_port = info.device_port().unwrap();
    assert_eq!(device_port.rdma_device().unwrap().name, site.device);
}

#[case(each_abi)]
fn the_source_keeps_the_scope(site: &Site) {
    let node = format!("{}%{}", figures(site), site.netdev);
    let info = only(resolve(site, node.as_str(), "7471", &rc()));
    assert_eq!(info.source, Some(site.link_local(site.scope_id())));
}

#[case(each_abi)]
fn no_scope(site: &Site) {
    let found = resolve(site, figures(site).as_str(), "7471", &rc());
    let unreachable = refusal(found);
    assert_eq!(unreachable.reason, Reason::NoScope);
    assert_explained(&unreachable, Step::Address, "needs a scope id");
}

#[case(each_abi)]
fn the_sources_scope_is_enough(site: &Site) {
    let hints = rc().source(site.link_local(site.scope_id()));
    let info = only(resolve(site, figures(site).as_str(), "7471", &hints));
    assert!(info.is_reachable(), "{info}");
}

#[case(each_abi)]
fn an_unknown_scope(site: &Site) {
    let node = format!("{}%nosuchif", figures(site));
    let found = resolve(site, node.as_str(), "7471", &rc());
    assert_eq!(found, Err(Error::Name(NameError::NoName)));
}

#[case(each_abi)]
fn a_passive_address_with_a_scope(site: &Site) {
    let node = format!("{}%{}", figures(site), site.netdev);
    let info = only(resolve(site, node.as_str(), "7471", &rc().passive()));
    let source: CmAddr = site.link_local(site.scope_id()).with_port(7471);
    assert_eq!(info.source, Some(source));
    assert!(info.is_reachable(), "{info}");
}

#[case(each_abi)]
fn a_passive_address_without_one(site: &Site) {
    let hints = rc().passive();
    let unreachable = refusal(resolve(site, figures(site).as_str(), "7471", &hints));
    assert_explained(&unreachable, Step::Bind, "needs a scope id");
}
