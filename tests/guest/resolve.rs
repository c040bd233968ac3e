//! Resolving addresses and routes.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use rdmacm_core::{CmAddr, Error, EventKind, PortSpace};
use rdmacm_tests::{PATIENCE, PLAIN, SECOND, Site, UNROUTABLE, expect, free_port};
use rdmacm_tests_macros::case;

#[case(each_abi, covers(RESOLVE_IP, RESOLVE_ADDR))]
fn addresses_of_both_families_resolve(site: &Site) {
    let channel = site.channel();
    for destination in [site.v4(7471), site.v6(7471)] {
        let id = site.routed(&channel, destination);
        let addresses = id.addresses().unwrap();
        assert_eq!(addresses.destination, Some(destination));
        assert_eq!(addresses.source.unwrap().ip(), destination.ip());
        assert_eq!(id.peer_addr(), Ok(Some(destination)));
        assert_eq!(id.peer_port(), Ok(7471));
        let device = addresses.device.unwrap().look_up().unwrap();
        assert_eq!(device.name, site.device);
    }
}

#[case(each_abi)]
fn a_given_source_is_used(site: &Site) {
    let (channel, id) = site.id();
    let source = site.v4(free_port());
    id.resolve_addr(Some(source), site.v4(7471), SECOND)
        .unwrap();
    expect(&channel, EventKind::AddrResolved);
    assert_eq!(id.local_addr(), Ok(Some(source)));
}

#[case(each_abi)]
fn a_bound_id_keeps_its_source(site: &Site) {
    let (channel, id) = site.id();
    let bound = site.v4(free_port());
    id.bind(bound).unwrap();
    let ignored = site.v4(free_port());
    id.resolve_addr(Some(ignored), site.v4(7471), SECOND)
        .unwrap();
    expect(&channel, EventKind::AddrResolved);
    assert_eq!(id.local_addr(), Ok(Some(bound)));
}

#[case(each_abi)]
fn a_source_of_another_family_changes_nothing(site: &Site) {
    let (channel, id) = site.id();
    let mixed = id.resolve_addr(Some(site.v6(0)), site.v4(7471), SECOND);
    assert!(
        matches!(mixed, Err(Error::InvalidInput { .. })),
        "{mixed:?}"
    );
    id.resolve_addr(None, site.v4(7471), SECOND).unwrap();
    expect(&channel, EventKind::AddrResolved);
}

#[case(each_abi)]
fn a_timeout_beyond_the_kernels_changes_nothing(site: &Site) {
    let (channel, id) = site.id();
    let forever = Duration::from_secs(u64::MAX);
    let refused = id.resolve_addr(None, site.v4(7471), forever);
    assert!(matches!(refused, Err(Error::InvalidInput { .. })));
    id.resolve_addr(None, site.v4(7471), SECOND).unwrap();
    expect(&channel, EventKind::AddrResolved);
    let refused = id.resolve_route(forever);
    assert!(matches!(refused, Err(Error::InvalidInput { .. })));
    id.resolve_route(SECOND).unwrap();
    expect(&channel, EventKind::RouteResolved);
}

#[case(each_abi)]
fn no_route_fails_immediately(site: &Site) {
    let (channel, id) = site.id();
    let error = id
        .resolve_addr(None, (UNROUTABLE, 7471), SECOND)
        .unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENETUNREACH));
    assert!(
        error.to_string().contains("no route leads there"),
        "{error}"
    );
    assert!(channel.try_next_event().unwrap().is_none());
}

#[case(each_abi)]
fn an_interface_without_rdma_is_reported_by_event(site: &Site) {
    let (channel, id) = site.id();
    id.resolve_addr(None, (PLAIN, 7471), SECOND).unwrap();
    let event = channel.next_event(PATIENCE).unwrap();
    let failure = event.failure().unwrap();
    assert_eq!(failure.kind(), EventKind::AddrError);
    assert_eq!(failure.raw_os_error(), Some(libc::ENODEV));
    assert!(failure.to_string().contains("no RDMA device"), "{failure}");
}

#[case(each_abi)]
fn a_silent_neighbour_times_out_and_can_be_retried(site: &Site) {
    let (channel, id) = site.id();
    for _ in 0..2 {
        let destination = (site.silent, 7471);
        let timeout = Duration::from_millis(100);
        id.resolve_addr(None, destination, timeout).unwrap();
        let event = channel.next_event(PATIENCE).unwrap();
        let failure = event.failure().unwrap();
        assert_eq!(failure.kind(), EventKind::AddrError);
        assert_eq!(failure.raw_os_error(), Some(libc::ETIMEDOUT));
        assert!(failure.to_string().contains("did not answer"), "{failure}");
    }
}

#[case(each_abi)]
fn a_second_resolution_is_refused(site: &Site) {
    let channel = site.channel();
    let id = site.resolved(&channel, site.v4(7471));
    let error = id.resolve_addr(None, site.v4(7471), SECOND).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    assert!(
        error.to_string().contains("has resolved already"),
        "{error}"
    );
    id.resolve_route(SECOND).unwrap();
    expect(&channel, EventKind::RouteResolved);
    let error = id.resolve_route(SECOND).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    assert!(
        error.to_string().contains("its route is resolved"),
        "{error}"
    );
}

#[case(each_abi)]
fn a_bound_id_has_its_family(site: &Site) {
    let (_channel, id) = site.id();
    id.bind(site.v4(0)).unwrap();
    let error = id.resolve_addr(None, site.v6(7471), SECOND).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    assert!(error.to_string().contains("another family"), "{error}");
}

#[case(each_abi)]
fn a_foreign_source_is_refused(site: &Site) {
    let (_channel, id) = site.id();
    let foreign = CmAddr::from(([198, 51, 100, 7], 0));
    let error = id
        .resolve_addr(Some(foreign), site.v4(7471), SECOND)
        .unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EADDRNOTAVAIL));
    assert!(error.to_string().contains("the source address"), "{error}");
}

/// The kernel takes loopback for "any device" and fails to resolve the route, or the
/// address if the first device is iWARP. Either way the error text explains it.
#[case(each_abi)]
fn loopback_is_explained(site: &Site) {
    for destination in [
        CmAddr::from((Ipv4Addr::LOCALHOST, 7471)),
        CmAddr::from((Ipv6Addr::LOCALHOST, 7471)),
    ] {
        let (channel, id) = site.id();
        let refused = id.resolve_addr(None, destination, SECOND).and_then(|()| {
            expect(&channel, EventKind::AddrResolved);
            id.resolve_route(SECOND)
        });
        let words = refused.unwrap_err().to_string();
        assert!(
            words.contains("a loopback address, which no RDMA device has"),
            "{words}"
        );
    }
}

#[case(each_abi)]
fn link_local_with_scope_resolves(site: &Site) {
    let channel = site.channel();
    let destination = site.link_local(site.scope_id()).with_port(7471);
    let id = site.routed(&channel, destination);
    assert_eq!(id.peer_addr(), Ok(Some(destination)));
}

#[case(each_abi)]
fn a_route_has_what_is_queried_one_by_one(site: &Site) {
    let channel = site.channel();
    let link_local = site.link_local(site.scope_id()).with_port(7471);
    for destination in [site.v4(7471), site.v6(7471), link_local] {
        let id = site.routed(&channel, destination);
        let route = id.route(true).unwrap();
        assert_eq!(route.addresses, id.addresses().unwrap(), "{destination}");
        assert_eq!(route.gids, Some(id.gids().unwrap()), "{destination}");
        let paths = id.path_records().unwrap();
        assert_eq!(route.path_records.len(), paths.len(), "{destination}");
    }
}

/// It finds this machine's own address on the interface that has it.
#[case(each_abi)]
fn link_local_without_scope_is_left_to_the_kernel(site: &Site) {
    let channel = site.channel();
    let id = site.resolved(&channel, site.link_local(0).with_port(7471));
    let device = id.addresses().unwrap().device.unwrap();
    assert_eq!(device.look_up().unwrap().name, site.device);
}

#[case(each_abi)]
fn a_route_needs_an_address(site: &Site) {
    let (_channel, id) = site.id();
    let error = id.resolve_route(SECOND).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    assert!(error.to_string().contains("no resolved address"), "{error}");
}

#[case(each_abi)]
fn a_route_needs_a_timeout(site: &Site) {
    let channel = site.channel();
    let id = site.resolved(&channel, site.v4(7471));
    let refused = id.resolve_route(Duration::ZERO);
    assert!(matches!(refused, Err(Error::InvalidInput { .. })));
    id.resolve_route(SECOND).unwrap();
    expect(&channel, EventKind::RouteResolved);
}

#[case(each_abi)]
fn dropping_an_id_cancels_its_resolution(site: &Site) {
    let (channel, id) = site.id();
    let minute = SECOND * 60;
    id.resolve_addr(None, (site.silent, 7471), minute).unwrap();
    let started = Instant::now();
    drop(id);
    assert!(started.elapsed() < minute / 2);
    assert!(channel.try_next_event().unwrap().is_none());
    let next = channel.create_id(PortSpace::TCP).unwrap();
    next.resolve_addr(None, site.v4(7471), SECOND).unwrap();
    assert!(*expect(&channel, EventKind::AddrResolved).id() == next);
}
