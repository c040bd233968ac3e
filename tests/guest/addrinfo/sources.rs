//! Source addresses that the caller gives.

use rdmacm_addrinfo::Step;
use rdmacm_core::{CmAddr, PortSpace};
use rdmacm_tests::{PLAIN, Site, free_port};

use super::{assert_explained, only, rc, refusal, resolve};
use rdmacm_tests_macros::case;

#[case(each_abi)]
fn a_source_is_kept_with_its_port(site: &Site) {
    for ip in site.ips() {
        let source = CmAddr::from((ip, free_port()));
        let found = resolve(site, ip.to_string().as_str(), "7471", &rc().source(source));
        let info = only(found);
        assert!(info.is_reachable(), "{info}");
        assert_eq!(info.source, Some(source));
    }
}

#[case(each_abi)]
fn a_source_port_in_use_is_accepted(site: &Site) {
    let source = site.v4(free_port());
    let channel = site.channel();
    let user = channel.create_id(PortSpace::TCP).unwrap();
    user.bind(source).unwrap();
    let v4 = site.v4.to_string();
    let info = only(resolve(site, v4.as_str(), "7471", &rc().source(source)));
    assert!(info.is_reachable(), "{info}");
    assert_eq!(info.source, Some(source));
}

#[case(each_abi)]
fn a_source_and_a_destination_need_no_node(site: &Site) {
    let hints = rc().source(site.v6(0)).destination(site.v6(7471));
    let info = only(resolve(site, None, None, &hints));
    assert!(info.is_reachable(), "{info}");
    assert_eq!(info.source, Some(site.v6(0)));
    assert_eq!(info.destination, Some(site.v6(7471)));
}

#[case(each_abi)]
fn a_destination_in_the_hints_takes_the_services_port(site: &Site) {
    let hints = rc().destination(site.v4(1));
    let info = only(resolve(site, None, "7471", &hints));
    assert_eq!(info.destination, Some(site.v4(7471)));
}

/// C programs give the client's address as a name.
#[case(each_abi)]
fn the_source_of_a_passive_result_serves_as_a_hint(site: &Site) {
    let v4 = site.v4.to_string();
    let mine = only(resolve(site, v4.as_str(), None, &rc().passive()));
    let hints = rc().source(mine.source.unwrap());
    let info = only(resolve(site, v4.as_str(), "7471", &hints));
    assert!(info.is_reachable(), "{info}");
    assert_eq!(info.source, mine.source);
}

#[case(each_abi)]
fn a_source_of_another_family(site: &Site) {
    let hints = rc().source(site.v6(0));
    let v4 = site.v4.to_string();
    let unreachable = refusal(resolve(site, v4.as_str(), "7471", &hints));
    assert_explained(
        &unreachable,
        Step::Address,
        "family is not the destination's",
    );
}

#[case(each_abi)]
fn a_source_this_machine_does_not_have(site: &Site) {
    let hints = rc().source(([198, 51, 100, 7], 0));
    let v4 = site.v4.to_string();
    let unreachable = refusal(resolve(site, v4.as_str(), "7471", &hints));
    assert_explained(
        &unreachable,
        Step::Address,
        "no network interface here has the source",
    );
}

#[case(each_abi)]
fn a_source_without_an_rdma_device(site: &Site) {
    let hints = rc().source((PLAIN, 0));
    let v4 = site.v4.to_string();
    let unreachable = refusal(resolve(site, v4.as_str(), "7471", &hints));
    assert_explained(&unreachable, Step::Address, "no RDMA device serves");
}

#[case(each_abi)]
fn an_unreachable_entry_keeps_its_source(site: &Site) {
    let source = CmAddr::from((PLAIN, 7));
    let v4 = site.v4.to_string();
    let info = only(resolve(site, v4.as_str(), "7471", &rc().source(source)));
    assert_eq!(info.source, Some(source));
}
