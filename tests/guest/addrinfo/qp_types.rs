//! The kernel's answers for each type of queue pair.

use rdmacm_addrinfo::{AddrInfo, Hints, Reason, Step};
use rdmacm_core::{PortSpace, QpType};
use rdmacm_tests::{PATIENCE, Site, Soft};

use super::{assert_explained, only, refusal, resolve};
use rdmacm_tests_macros::case;

fn patient() -> Hints {
    Hints::new().deadline(PATIENCE)
}

fn resolved(site: &Site, hints: &Hints) -> AddrInfo {
    let v4 = site.v4.to_string();
    only(resolve(site, v4.as_str(), "7471", hints))
}

#[case(each_abi)]
fn the_default_is_a_reliable_connection(site: &Site) {
    let info = resolved(site, &patient());
    assert_eq!(
        (info.port_space, info.qp_type),
        (PortSpace::TCP, QpType::RC)
    );
    assert!(info.is_reachable(), "{info}");
}

#[case(each_abi)]
fn reliable_connections_in_the_infiniband_port_space(site: &Site) {
    let info = resolved(site, &patient().port_space(PortSpace::IB));
    assert_eq!(info.qp_type, QpType::RC);
    assert!(info.is_reachable(), "{info}");
}

/// On iWARP the kernel resolves any type and fails to connect.
fn is_for_roce(site: &Site, hints: &Hints) {
    let route = resolved(site, hints).route;
    match site.soft {
        Soft::Rxe => assert_eq!(route.unwrap().device_port.unwrap().port, 1),
        Soft::Siw => {
            let unreachable = route.unwrap_err();
            assert_eq!(unreachable.reason, Reason::OnlyReliableConnected);
            assert_explained(&unreachable, Step::Query, "iWARP");
        }
    }
}

#[case(each_abi)]
fn datagrams_are_for_roce(site: &Site) {
    is_for_roce(site, &patient().qp_type(QpType::UD));
}

#[case(each_abi)]
fn unreliable_connections_are_for_roce(site: &Site) {
    is_for_roce(site, &patient().qp_type(QpType::UC));
}

#[case(each_abi)]
fn extended_reliable_connections_are_for_roce(site: &Site) {
    is_for_roce(site, &patient().qp_type(QpType::XRC_INI));
    is_for_roce(site, &patient().qp_type(QpType::XRC_TGT));
}

#[case(each_abi)]
fn listening_for_datagrams_is_for_roce(site: &Site) {
    is_for_roce(site, &patient().qp_type(QpType::UD).passive());
}

#[case(each_abi)]
fn listening_for_datagrams_on_a_device_is_for_roce(site: &Site) {
    let hints = patient().qp_type(QpType::UD).passive();
    let found = resolve(site, site.device, "7471", &hints).unwrap();
    assert!(!found.is_empty());
    for info in found {
        match site.soft {
            Soft::Rxe => assert!(info.is_reachable(), "{info}"),
            Soft::Siw => {
                let reason = info.route.unwrap_err().reason;
                assert_eq!(reason, Reason::OnlyReliableConnected);
            }
        }
    }
}

#[case(each_abi)]
fn ipoib_is_for_its_own_interfaces(site: &Site) {
    let v4 = site.v4.to_string();
    let hints = patient().port_space(PortSpace::IPOIB);
    let unreachable = refusal(resolve(site, v4.as_str(), "7471", &hints));
    assert_eq!(unreachable.reason, Reason::OnlyIpoib);
    assert_explained(
        &unreachable,
        Step::Address,
        "needs an address of an IPoIB interface",
    );
}

#[case(each_abi)]
fn listening_on_ipoib_is_for_its_own_interfaces(site: &Site) {
    let v4 = site.v4.to_string();
    let hints = patient().port_space(PortSpace::IPOIB).passive();
    let unreachable = refusal(resolve(site, v4.as_str(), "7471", &hints));
    assert_eq!(unreachable.reason, Reason::OnlyIpoib);
    assert_explained(
        &unreachable,
        Step::Bind,
        "needs an address of an IPoIB interface",
    );
}
