//! Native InfiniBand addresses and services where there is no InfiniBand.

use rdmacm_addrinfo::{AddrInfoFlags, Error, Hints, Reason, Step};
use rdmacm_core::{AddressAbi, CmAddr, Family, Gid, IbAddr, PortSpace};
use rdmacm_tests::{PATIENCE, Site};

use super::{assert_explained, only, rc, refusal, resolve};
use rdmacm_tests_macros::case;

/// The device's own GID, if the kernel treats it as a native InfiniBand address.
fn own_gid(site: &Site) -> Gid {
    site.v4.to_ipv6_mapped().into()
}

/// The kernel resolves native addresses of RoCE ports' subnets like InfiniBand's, and
/// then finds no route.
#[track_caller]
fn is_for_infiniband(site: &Site, node: Option<&str>, hints: &Hints) {
    let refusal = |hints| refusal(resolve(site, node, "7471", &hints));
    match site.abi {
        AddressAbi::AnyFamily => {
            let unreachable = refusal(hints.clone());
            assert_explained(&unreachable, Step::Route, "need an InfiniBand port");
            assert_eq!(unreachable.reason, Reason::OnlyInfiniband);
            let unreachable = refusal(hints.clone().no_route());
            assert_explained(&unreachable, Step::Query, "need an InfiniBand port");
            assert_eq!(unreachable.reason, Reason::OnlyInfiniband);
        }
        AddressAbi::IpOnly => assert_explained(&refusal(hints.clone()), Step::Address, IP_ONLY),
    }
}

#[track_caller]
fn is_no_device(site: &Site, hints: &Hints, step: Step, words: &str) {
    let unreachable = refusal(resolve(site, None, "7471", hints));
    match site.abi {
        AddressAbi::AnyFamily => {
            assert_explained(&unreachable, step, words);
            let Reason::Refused(error) = &unreachable.reason else {
                panic!("{unreachable}");
            };
            assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
        }
        AddressAbi::IpOnly => assert_explained(&unreachable, step, IP_ONLY),
    }
}

/// The older commands do not support native addresses.
const IP_ONLY: &str = "the IP commands know no InfiniBand";

#[case(each_abi)]
fn a_numeric_gid_needs_infiniband(site: &Site) {
    let hints = rc().numeric_host().flags(AddrInfoFlags::FAMILY);
    let gid = own_gid(site).to_string();
    is_for_infiniband(site, Some(&gid), &hints.family(Family::Ib));
}

#[case(each_abi)]
fn an_infiniband_destination_needs_infiniband(site: &Site) {
    let to = IbAddr::new("fe80::2:c903:a1:b2c3".parse().unwrap());
    is_for_infiniband(site, None, &rc().destination(to));
}

#[case(each_abi)]
fn an_unknown_subnet_has_no_device(site: &Site) {
    let to = IbAddr::new("fec0::2:c903:a1:b2c3".parse().unwrap());
    let words = "active in the destination's subnet";
    is_no_device(site, &rc().destination(to), Step::Address, words);
}

#[case(each_abi)]
fn an_infiniband_source_needs_infiniband(site: &Site) {
    let own = IbAddr::new(own_gid(site));
    let hints = rc().source(own).destination(own);
    is_no_device(site, &hints, Step::Address, "RoCE and iWARP do not count");
}

#[case(each_abi)]
fn listening_on_a_gid_needs_infiniband(site: &Site) {
    let hints = rc().passive().source(IbAddr::new(own_gid(site)));
    is_no_device(site, &hints, Step::Bind, "RoCE and iWARP do not count");
}

#[case(each_abi)]
fn the_wildcard_gid_belongs_to_every_device(site: &Site) {
    let hints = rc().passive().numeric_host().family(Family::Ib);
    let info = only(resolve(site, None, "7471", &hints));
    let any = IbAddr::new(Gid::UNSPECIFIED).with_ip_service(PortSpace::TCP, 7471);
    assert_eq!(info.source, Some(any.into()));
    match site.abi {
        AddressAbi::AnyFamily => assert!(info.route.unwrap().device_port.is_none()),
        AddressAbi::IpOnly => assert_explained(&info.route.unwrap_err(), Step::Bind, IP_ONLY),
    }
}

/// The kernel checks the service id first.
#[case(each_abi)]
fn a_service_id_is_of_the_ids_port_space(site: &Site) {
    let (_channel, id) = site.id();
    let datagrams = IbAddr::new(Gid::UNSPECIFIED).with_ip_service(PortSpace::UDP, 0);
    let error = id.bind(datagrams).unwrap_err();
    match site.abi {
        AddressAbi::AnyFamily => {
            assert_eq!(error.raw_os_error(), Some(libc::EPROTONOSUPPORT));
            assert!(error.to_string().contains("port space"), "{error}");
            let own = IbAddr::new(Gid::UNSPECIFIED).with_ip_service(PortSpace::TCP, 0);
            id.bind(own).unwrap();
            let Some(CmAddr::Ib(bound)) = id.local_addr().unwrap() else {
                panic!("{:?}", id.local_addr());
            };
            assert_eq!(bound.service_mask, u64::MAX);
            assert_eq!(bound.service_id, own.service_id | u64::from(bound.port()));
            assert_ne!(bound.port(), 0);
        }
        AddressAbi::IpOnly => assert_eq!(error.raw_os_error(), None),
    }
}

#[case(each_abi)]
fn a_service_needs_an_infiniband_port(site: &Site) {
    let hints = Hints::new().subnet_administrator().deadline(PATIENCE);
    for service in ["storage", "0x7147"] {
        let refused = resolve(site, None, service, &hints);
        assert_eq!(refused, Err(Error::NoInfinibandPort));
    }
}

#[case(each_abi)]
fn a_soft_device_is_no_infiniband_port(site: &Site) {
    assert_eq!(site.channel().infiniband_ports(), Ok(vec![]));
}
