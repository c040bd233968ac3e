//! Valid and invalid options.

use rdmacm_core::{
    AddressAbi, CmAddr, ConnParam, Error, EventKind, Family, PathData, PathFlags, PortSpace,
};
use rdmacm_tests::{SECOND, Site, Soft, expect, free_port};
use rdmacm_tests_macros::case;

#[case(each_abi, covers(SET_OPTION))]
fn the_type_of_service_reaches_the_route(site: &Site) {
    let channel = site.channel();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    id.set_tos(0x68).unwrap();
    id.resolve_addr(None, site.v4(7471), SECOND).unwrap();
    expect(&channel, EventKind::AddrResolved);
    id.resolve_route(SECOND).unwrap();
    expect(&channel, EventKind::RouteResolved);
    let classes: Vec<_> = id
        .path_records()
        .unwrap()
        .iter()
        .map(|path| path.record.traffic_class)
        .collect();
    match site.soft {
        Soft::Rxe => assert_eq!(classes, [0x68]),
        Soft::Siw => assert!(classes.is_empty()),
    }
}

#[case(each_abi)]
fn two_ids_share_a_port_if_both_allow_it(site: &Site) {
    let (channel, one) = site.id();
    let other = channel.create_id(PortSpace::TCP).unwrap();
    let address = site.v4(free_port());
    one.set_reuse_addr(true).unwrap();
    one.bind(address).unwrap();
    assert_eq!(
        other.bind(address).unwrap_err().raw_os_error(),
        Some(libc::EADDRINUSE)
    );
    other.set_reuse_addr(true).unwrap();
    other.bind(address).unwrap();
}

#[case(each_abi)]
fn reuse_cannot_be_cleared_after_binding(site: &Site) {
    let (_channel, id) = site.id();
    id.set_reuse_addr(true).unwrap();
    id.set_reuse_addr(false).unwrap();
    id.bind(site.v4(0)).unwrap();
    id.set_reuse_addr(true).unwrap();
    let error = id.set_reuse_addr(false).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    assert!(
        error.to_string().contains("before the id is bound"),
        "{error}"
    );
}

#[case(each_abi)]
fn reuse_is_refused_to_a_listener(site: &Site) {
    let (_channel, id) = site.id();
    id.bind(site.v4(free_port())).unwrap();
    id.listen(1).unwrap();
    let error = id.set_reuse_addr(true).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    assert!(error.to_string().contains("listens already"), "{error}");
}

#[case(each_abi)]
fn af_only_is_refused_after_binding(site: &Site) {
    let (_channel, fresh) = site.id();
    fresh.set_af_only(true).unwrap();
    let address = CmAddr::any(Family::V6).with_port(free_port());
    fresh.bind(address).unwrap();
    fresh.set_af_only(false).unwrap();
    fresh.listen(1).unwrap();
    let error = fresh.set_af_only(true).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    assert!(error.to_string().contains("have not begun"), "{error}");
}

#[case(each_abi)]
fn an_ack_timeout_needs_a_reliable_connection(site: &Site) {
    let (channel, connected) = site.id();
    for exponent in [0, 14, 31] {
        connected.set_ack_timeout(exponent).unwrap();
    }
    let datagram = channel.create_id(PortSpace::UDP).unwrap();
    let error = datagram.set_ack_timeout(14).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    assert!(error.to_string().contains("reliable connected"), "{error}");
}

#[case(each_abi)]
fn an_ack_timeout_has_five_bits(site: &Site) {
    let (_channel, id) = site.id();
    let refused = id.set_ack_timeout(32);
    assert!(matches!(refused, Err(Error::InvalidInput { .. })));
}

/// A path record like the kernel's for rxe's addresses.
fn path(site: &Site) -> PathData {
    let rxe = Site::rxe(site.abi);
    let channel = rxe.channel();
    let id = rxe.routed(&channel, rxe.v4(7471));
    let mut path = id.path_records().unwrap()[0];
    // The IP commands do not report it.
    path.flags = PathData::USABLE;
    path
}

/// Also on iWARP, which does not use it.
#[case(each_abi)]
fn setting_a_path_replaces_route_resolution(site: &Site) {
    let path = path(site);
    let channel = site.channel();
    let id = site.resolved(&channel, site.v4(7471));
    id.set_ib_path(&[path]).unwrap();
    expect(&channel, EventKind::RouteResolved);
    let set = id.path_records().unwrap();
    match (site.soft, site.abi) {
        // QUERY_ROUTE reports no paths on iWARP, set or not.
        (Soft::Siw, AddressAbi::IpOnly) => assert!(set.is_empty()),
        _ => assert_eq!(set[0].record.dgid, path.record.dgid),
    }
    let late = id.set_ib_path(&[path]).unwrap_err();
    assert_eq!(late.raw_os_error(), Some(libc::EINVAL));
}

#[case(each_abi)]
fn a_path_needs_its_flags(site: &Site) {
    let mut path = path(site);
    path.flags = PathFlags::PRIMARY;
    let channel = site.channel();
    let id = site.resolved(&channel, site.v4(7471));
    let error = id.set_ib_path(&[path]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    assert!(error.to_string().contains("bidirectional"), "{error}");
    path.flags = PathData::USABLE;
    id.set_ib_path(&[path]).unwrap();
}

#[case(needs(CmResponse))]
fn a_path_needs_a_partition_of_the_port(site: &Site) {
    let mut path = path(site);
    path.record.pkey = 0x1234;
    let channel = site.channel();
    let id = site.resolved(&channel, site.v4(7471));
    id.set_ib_path(&[path]).unwrap();
    expect(&channel, EventKind::RouteResolved);
    let error = id.connect(ConnParam::new().qp_number(7)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    assert!(error.to_string().contains("partition key"), "{error}");
}

#[case(each_abi)]
fn a_path_needs_a_resolved_address(site: &Site) {
    let (_channel, id) = site.id();
    let error = id.set_ib_path(&[path(site)]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
}

/// The record with the flags is used.
#[case(each_abi)]
fn any_number_of_paths(site: &Site) {
    let usable = path(site);
    let mut other = usable;
    other.flags = PathFlags::ALTERNATE;
    let channel = site.channel();
    for others in [1, 40] {
        let id = site.resolved(&channel, site.v4(7471));
        let refused = id.set_ib_path(&[]);
        assert!(matches!(refused, Err(Error::InvalidInput { .. })));
        let paths = [vec![other; others], vec![usable]].concat();
        id.set_ib_path(&paths).unwrap();
        expect(&channel, EventKind::RouteResolved);
    }
}
