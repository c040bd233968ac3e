//! Native InfiniBand addresses, on a simulated fabric.

use rdmacm_addrinfo::{
    AddrInfo, AddrInfoFlags, AddrInfoResolver, Error, Hints, NameError, Reason, Step,
};
use rdmacm_core::{
    AddressAbi, CmAddr, Error as CoreError, EventChannel, Family, Gid, IbAddr, PortSpace, QpType,
};
use rdmacm_sim::{Fabric, Host};
use std::sync::Arc;

use crate::fabric::{HERE, THERE, fabric, gid, resolver};

fn resolve(
    host: &Host,
    node: Option<&str>,
    service: Option<&str>,
    hints: &Hints,
) -> Result<Vec<AddrInfo>, Error> {
    resolver(host).resolve(node, service, hints)
}

/// Hints that take the node for a GID.
fn a_gid() -> Hints {
    let hints = Hints::rc().numeric_host().flags(AddrInfoFlags::FAMILY);
    hints.family(Family::Ib)
}

#[test]
fn a_numeric_gid_is_reached_by_its_route() {
    let found = resolve(&fabric().1, Some(THERE), Some("7471"), &a_gid()).unwrap();
    let [info] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!((info.family, info.port_space), (Family::Ib, PortSpace::TCP));
    let to = IbAddr::new(gid(THERE)).with_ip_service(PortSpace::TCP, 7471);
    assert_eq!(info.destination, Some(to.into()));
    let from = IbAddr::new(gid(HERE)).with_ip_service(PortSpace::TCP, 0);
    assert_eq!(info.source, Some(from.into()));
    let route = info.route.as_ref().unwrap();
    assert_eq!(
        route.device_port.as_ref().unwrap().destination_gid,
        Some(gid(THERE))
    );
    assert_eq!(route.path_records[0].record.service_id, to.service_id);
}

#[test]
fn the_device_is_looked_up_when_it_is_asked_for() {
    let (_fabric, here) = fabric();
    let resolve = || resolve(&here, Some(THERE), Some("7471"), &a_gid()).unwrap();
    let (found, again) = (resolve(), resolve());
    assert_eq!(found, again);
    let device_port = found[0].device_port().unwrap();
    let device = device_port.rdma_device().unwrap();
    assert_eq!(
        (device.name.as_str(), device.id()),
        ("mlx5_0", device_port.device)
    );
    here.remove_device("mlx5_0");
    assert_eq!(device_port.rdma_device(), None);
    let unknown = format!("unknown device {} port 1", device_port.device.guid);
    assert_eq!(device_port.to_string(), unknown);
}

#[test]
fn only_numeric_gids_are_read() {
    let here = fabric().1;
    let refused = |node, hints| resolve(&here, Some(node), Some("7471"), &hints);
    // What librdmacm would read 16 bytes of, and there are four.
    let v4 = refused("10.1.0.7", a_gid());
    assert_eq!(v4, Err(NameError::AddressFamily.into()));
    let name = refused("localhost", a_gid());
    assert_eq!(name, Err(NameError::NoName.into()));
    let looked_up = refused(THERE, Hints::rc().family(Family::Ib));
    assert_eq!(looked_up, Err(NameError::Family.into()));
}

#[test]
fn without_a_node_it_is_the_wildcard_or_the_loopback_gid() {
    let listen = resolve(&fabric().1, None, Some("7471"), &a_gid().passive()).unwrap();
    let any = IbAddr::new(Gid::UNSPECIFIED).with_ip_service(PortSpace::TCP, 7471);
    assert_eq!(listen[0].source, Some(any.into()));
    assert_eq!(listen[0].destination, None);
    assert!(listen[0].is_reachable() && listen[0].device_port().is_none());
    let own = resolve(&fabric().1, None, Some("7471"), &a_gid()).unwrap();
    let loopback = IbAddr::new(Gid::LOOPBACK).with_ip_service(PortSpace::TCP, 7471);
    assert_eq!(own[0].destination, Some(loopback.into()));
    assert!(own[0].is_reachable(), "{:?}", own[0].route);
}

#[test]
fn an_address_in_the_hints_is_asked_as_it_is() {
    let to = IbAddr::new(gid(THERE)).with_service_id(0x1234_5678_9abc_def0);
    let found = resolve(&fabric().1, None, None, &Hints::rc().destination(to)).unwrap();
    assert_eq!(found[0].destination, Some(to.into()));
    assert!(found[0].is_reachable(), "{:?}", found[0].route);
    // A service makes its service id.
    let found = resolve(
        &fabric().1,
        None,
        Some("7471"),
        &Hints::rc().destination(to),
    )
    .unwrap();
    let with_port = to.with_ip_service(PortSpace::TCP, 7471);
    assert_eq!(found[0].destination, Some(with_port.into()));
}

#[test]
fn a_source_of_the_hints_is_bound() {
    let to = IbAddr::new(gid(THERE)).with_ip_service(PortSpace::TCP, 7471);
    let from = |text| IbAddr::new(gid(text)).with_ip_service(PortSpace::TCP, 7);
    let hints = |source: IbAddr| Hints::rc().source(source).destination(to);
    let found = resolve(&fabric().1, None, None, &hints(from(HERE))).unwrap();
    assert_eq!(found[0].source, Some(from(HERE).into()));
    let found = resolve(&fabric().1, None, None, &hints(from("fe80::9"))).unwrap();
    let why = found[0].route.as_ref().unwrap_err();
    assert!(why.to_string().contains("has this GID"), "{why}");
    let listen = Hints::rc().passive().source(from(HERE));
    let found = resolve(&fabric().1, None, None, &listen).unwrap();
    assert_eq!(found[0].source, Some(from(HERE).into()));
    assert_eq!(found[0].device_port().unwrap().port, 1);
}

#[test]
fn a_machine_without_infiniband_says_so() {
    let nothing = Fabric::new().host([]);
    let to = IbAddr::new(gid(THERE)).with_ip_service(PortSpace::TCP, 7471);
    let found = resolve(&nothing, None, None, &Hints::rc().destination(to)).unwrap();
    let why = found[0].route.as_ref().unwrap_err();
    assert_eq!(why.step, Step::Address);
    let words = why.to_string();
    assert!(words.contains("ENODEV: no InfiniBand port"), "{words}");
}

#[test]
fn the_ip_commands_know_no_gids() {
    let host = fabric().1;
    let open = move || {
        let options = EventChannel::options().ucma(host.open().unwrap());
        options
            .devices(Arc::new(host.clone()))
            .address_abi(AddressAbi::IpOnly)
            .open()
    };
    let to = CmAddr::from(IbAddr::new(gid(THERE)));
    let hints = Hints::rc().destination(to);
    let found = AddrInfoResolver::new()
        .channels(open)
        .resolve(None, None, &hints);
    let found = found.unwrap();
    let why = found[0].route.as_ref().unwrap_err();
    let invalid =
        |reason: &Reason| matches!(reason, Reason::Refused(CoreError::InvalidInput { .. }));
    assert!(invalid(&why.reason), "{why}");
}

#[test]
fn a_datagram_service_is_one_of_its_own_port_space() {
    let hints = Hints::ud().numeric_host().flags(AddrInfoFlags::FAMILY);
    let hints = hints.family(Family::Ib);
    let found = resolve(&fabric().1, Some(THERE), Some("7471"), &hints).unwrap();
    assert_eq!(found[0].qp_type, QpType::UD);
    assert_eq!(found[0].port_space, PortSpace::UDP);
    let to = IbAddr::new(gid(THERE)).with_ip_service(PortSpace::UDP, 7471);
    assert_eq!(found[0].destination, Some(to.into()));
}

#[test]
fn a_path_begins_where_the_source_is() {
    let here = fabric().1;
    let found = resolve(&here, Some(THERE), Some("7471"), &a_gid()).unwrap();
    let paths = found[0].route.as_ref().unwrap().path_records.clone();
    let along = Hints::rc().paths(paths);
    assert!(resolve(&here, None, Some("7471"), &along).is_ok());
    let from_v4 = along.source(([10, 1, 0, 3], 0));
    let refused = resolve(&here, None, Some("7471"), &from_v4);
    assert!(matches!(refused, Err(Error::Hints(_))), "{refused:?}");
}
