//! Multicast groups.

use rdmacm_core::{CmAddr, CmId, EventChannel, Family, JoinFlags, PortSpace};
use rdmacm_tests::{Site, Soft};
use rdmacm_tests_macros::case;

pub(crate) mod groups;

fn group(number: u8) -> CmAddr {
    CmAddr::from(([239, 71, 0, number], 0))
}

fn bound(site: &Site) -> (EventChannel, CmId) {
    let channel = site.channel();
    let id = channel.create_id(PortSpace::UDP).unwrap();
    id.bind(site.v4(0)).unwrap();
    (channel, id)
}

fn refused(id: &CmId, group: CmAddr, errno: i32, words: &str) {
    let outcome = id.join_multicast(group, JoinFlags::FULL_MEMBER);
    let error = outcome.unwrap_err();
    assert_eq!(error.raw_os_error(), Some(errno), "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[case(each_abi, covers(JOIN_IP_MCAST, JOIN_MCAST))]
fn iwarp_has_no_groups(site: &Site) {
    let (_channel, id) = bound(site);
    match site.soft {
        Soft::Siw => refused(&id, group(1), libc::ENOSYS, "no multicast"),
        Soft::Rxe => drop(id.join_multicast(group(1), JoinFlags::FULL_MEMBER).unwrap()),
    }
}

#[case(each_abi)]
fn a_connected_service_cannot_join(site: &Site) {
    let (_channel, id) = site.id();
    id.bind(site.v4(0)).unwrap();
    refused(&id, group(1), libc::EINVAL, "for datagrams");
}

#[case(each_abi)]
fn an_unbound_id_cannot_join(site: &Site) {
    let channel = site.channel();
    let id = channel.create_id(PortSpace::UDP).unwrap();
    refused(&id, group(1), libc::EINVAL, "attached to a device");
}

/// On InfiniBand this requests a group of the subnet administrator's choice.
#[case(each_abi)]
fn a_wildcard_group_is_passed_to_the_kernel(site: &Site) {
    let (_channel, id) = bound(site);
    for family in [Family::V4, Family::V6] {
        let wildcard = CmAddr::any(family);
        match site.soft {
            Soft::Siw => refused(&id, wildcard, libc::ENOSYS, "no multicast"),
            Soft::Rxe => refused(&id, wildcard, libc::EINVAL, "only InfiniBand"),
        }
    }
}
