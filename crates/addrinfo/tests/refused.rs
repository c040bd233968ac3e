//! What is refused before anything is asked: on any machine, RDMA or not.

use rdmacm_addrinfo::{
    AddrInfoFlags, AddrInfoResolver, Error, Hints, NameError, allowed_qp_types, resolve,
};
use rdmacm_core::{Family, PortSpace, QpType};

const V4: ([u8; 4], u16) = ([10, 1, 0, 7], 7471);
const V6: ([u16; 8], u16) = ([0xfd71, 0, 0, 0, 0, 0, 0, 1], 7471);

#[track_caller]
fn is_contradiction(node: Option<&str>, hints: &Hints) {
    let refused = resolve(node, "7471", hints);
    assert!(matches!(refused, Err(Error::Hints(_))), "{refused:?}");
}

#[test]
fn nothing_is_nothing_to_resolve() {
    let nothing = resolve(None, None, &Hints::rc());
    assert_eq!(nothing, Err(Error::NothingToResolve));
}

#[test]
fn an_address_of_the_wrong_end_is_nothing_to_resolve() {
    let only_a_source = Hints::rc().source(V4);
    let refused = resolve(None, None, &only_a_source);
    assert_eq!(refused, Err(Error::NothingToResolve));
}

#[test]
fn the_family_flag_needs_a_family() {
    let hints = Hints::rc().flags(AddrInfoFlags::FAMILY);
    is_contradiction(Some("10.1.0.7"), &hints);
}

#[test]
fn a_passive_resolution_has_no_destination() {
    is_contradiction(None, &Hints::rc().passive().destination(V4));
}

#[test]
fn all_addresses_of_this_machine_are_of_no_source() {
    let refused = AddrInfoResolver::new().local("7471", &Hints::rc().source(V4));
    assert!(matches!(refused, Err(Error::Hints(_))), "{refused:?}");
}

#[test]
fn source_and_destination_share_a_family() {
    is_contradiction(None, &Hints::rc().source(V4).destination(V6));
}

#[test]
fn an_address_must_be_of_the_family_asked_for() {
    is_contradiction(None, &Hints::rc().destination(V4).family(Family::V6));
}

#[test]
fn a_node_and_an_address_in_its_place_are_one_too_many() {
    is_contradiction(Some("10.1.0.7"), &Hints::rc().destination(V4));
    is_contradiction(Some("10.1.0.7"), &Hints::rc().passive().source(V4));
}

#[test]
fn a_queue_pair_type_outside_the_port_space_is_refused() {
    let port_spaces = [PortSpace::TCP, PortSpace::UDP, PortSpace::IPOIB];
    for port_space in port_spaces {
        for qp_type in [QpType::RC, QpType::UC, QpType::UD, QpType::XRC_INI] {
            if allowed_qp_types(port_space).contains(&qp_type) {
                continue;
            }
            let hints = Hints::new().port_space(port_space).qp_type(qp_type);
            let expected = Error::QpType {
                port_space,
                qp_type,
            };
            assert_eq!(resolve("10.1.0.7", "7471", &hints), Err(expected));
        }
    }
}

#[test]
fn a_nul_is_refused_wherever_it_stands() {
    for (node, service) in [
        (Some("host\0"), None),
        (Some("10.1.0.7\0"), Some("7471")),
        (Some("fe80::1%lo\0"), Some("7471")),
        (None, Some("7471\0")),
    ] {
        let refused = resolve(node, service, &Hints::rc());
        assert_eq!(refused, Err(Error::NulInText), "{node:?} {service:?}");
    }
}

#[test]
fn native_infiniband_addresses_are_no_names() {
    let hints = Hints::rc().family(Family::Ib);
    let refused = resolve("10.1.0.7", "7471", &hints);
    assert_eq!(refused, Err(Error::Name(NameError::Family)));
}

#[test]
fn a_name_is_no_numeric_host() {
    let refused = resolve("localhost", "7471", &Hints::rc().numeric_host());
    assert_eq!(refused, Err(Error::Name(NameError::NoName)));
}

#[test]
fn an_address_has_one_family() {
    let refused = resolve("10.1.0.7", "7471", &Hints::rc().family(Family::V6));
    assert_eq!(refused, Err(Error::Name(NameError::AddressFamily)));
}

#[test]
fn a_service_nobody_knows_is_a_service_error() {
    let refused = resolve("10.1.0.7", "no-such-service", &Hints::rc());
    assert_eq!(refused, Err(Error::Name(NameError::Service)));
}
