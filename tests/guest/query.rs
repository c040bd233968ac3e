//! Queries of an id, equal with both ABIs of the address commands.

use std::sync::Arc;

use rdmacm_core::{AddressAbi, CmAddr, Gid, PathMtu, PortSpace, RdmaDevice, Transport};
use rdmacm_tests::{Counting, SECOND, Site, Soft, UNROUTABLE, expect};
use rdmacm_tests_macros::case;

#[case(each_abi)]
fn a_new_id_has_nothing(site: &Site) {
    let (_channel, id) = site.id();
    let addresses = id.addresses().unwrap();
    assert_eq!(addresses.source, None);
    assert_eq!(addresses.destination, None);
    assert_eq!(addresses.device, None);
    assert!(id.path_records().unwrap().is_empty());
    assert_eq!(id.local_port(), Ok(0));
}

/// RoCE v2 has IP addresses as GIDs, iWARP the MAC address of its interface.
fn gid(site: &Site) -> Gid {
    match site.soft {
        Soft::Rxe => Gid(site.v4.to_ipv6_mapped().octets()),
        Soft::Siw => {
            let path = format!("/sys/class/net/{}/address", site.netdev);
            let mac = std::fs::read_to_string(path).unwrap();
            let mut gid = [0; 16];
            for (to, byte) in gid.iter_mut().zip(mac.trim().split(':')) {
                *to = u8::from_str_radix(byte, 16).unwrap();
            }
            Gid(gid)
        }
    }
}

#[case(each_abi, covers(QUERY))]
fn gids_are_those_of_the_transport(site: &Site) {
    let channel = site.channel();
    let id = site.routed(&channel, site.v4(7471));
    let gids = id.gids().unwrap();
    assert_eq!(gids.source, gid(site));
    if site.soft == Soft::Rxe {
        assert_eq!(gids.destination, Some(gid(site)));
        let v6 = site.routed(&channel, site.v6(7471)).gids().unwrap();
        assert_eq!(v6.source, Gid::from(site.v6));
        assert_eq!(v6.destination, Some(Gid::from(site.v6)));
    }
}

#[case(each_abi, covers(RESOLVE_ROUTE, QUERY_ROUTE))]
fn roce_has_one_path_and_iwarp_none(site: &Site) {
    let channel = site.channel();
    let id = site.routed(&channel, site.v4(7471));
    let paths = id.path_records().unwrap();
    if site.soft == Soft::Siw {
        return assert!(paths.is_empty());
    }
    assert_eq!(paths.len(), 1);
    let path = paths[0].record;
    assert_eq!((path.sgid, path.dgid), (gid(site), gid(site)));
    // The largest MTU that fits an Ethernet frame of 1500 bytes.
    assert_eq!(path.mtu, PathMtu::B1024);
    assert_eq!(path.pkey, 0xffff);
    assert_eq!(path.hop_limit, 64);
    assert!(path.reversible);
    let flags = match site.abi {
        AddressAbi::AnyFamily => rdmacm_abi::PathRecordData::USABLE,
        AddressAbi::IpOnly => rdmacm_core::PathFlags::empty(),
    };
    assert_eq!(paths[0].flags, flags);
}

#[case(each_abi)]
fn both_abis_give_equal_answers(site: &Site) {
    let other = Site {
        abi: match site.abi {
            AddressAbi::AnyFamily => AddressAbi::IpOnly,
            AddressAbi::IpOnly => AddressAbi::AnyFamily,
        },
        ..*site
    };
    let query = |site: &Site, destination: CmAddr| {
        let channel = site.channel();
        let id = site.routed(&channel, destination);
        let addresses = id.addresses().unwrap();
        let path = id.path_records().unwrap().first().map(|path| {
            let mut record = path.record;
            // Random for every id, and absent in the response of the IP commands.
            (record.flow_label, record.service_id) = (0, 0);
            // The kernel's value there is no LID on RoCE.
            (record.slid, record.dlid) = (0, 0);
            record
        });
        let source = addresses.source.map(|source| source.with_port(0));
        let place = (addresses.device, addresses.port_number, id.gids().unwrap());
        (source, addresses.destination, place, path)
    };
    for destination in [site.v4(7471), site.v6(7471)] {
        assert_eq!(query(site, destination), query(&other, destination));
    }
}

#[case(each_abi)]
fn an_answer_is_cached_until_the_id_changes_state(site: &Site) {
    let device = Arc::new(Counting::new());
    let channel = site.channel_on(&device);
    let id = channel.create_id(PortSpace::TCP).unwrap();
    let asked = |ask: &dyn Fn()| {
        let before = device.commands();
        ask();
        device.commands() - before
    };
    let ask = || {
        id.addresses().unwrap();
    };
    let ask_gids = || {
        id.gids().unwrap();
    };
    assert_eq!(asked(&ask), 1);
    assert_eq!(asked(&ask), 0);
    id.resolve_addr(None, site.v4(7471), SECOND).unwrap();
    expect(&channel, rdmacm_core::EventKind::AddrResolved);
    assert_eq!(asked(&ask), 1);
    assert_eq!(asked(&ask), 0);
    assert_eq!(asked(&ask_gids), 1);
    assert_eq!(asked(&ask_gids), 0);
}

/// The kernel binds an id before it looks up a route.
#[case(each_abi)]
fn a_failed_command_invalidates_the_cache(site: &Site) {
    let (_channel, id) = site.id();
    assert_eq!(id.local_port(), Ok(0));
    id.resolve_addr(None, (UNROUTABLE, 7471), SECOND)
        .unwrap_err();
    assert_ne!(id.local_port(), Ok(0));
}

/// Only path records have the partitions of RoCE and iWARP.
#[case(each_abi)]
fn the_partition_of_a_port_without_one_is_zero(site: &Site) {
    let channel = site.channel();
    let id = site.routed(&channel, site.v4(7471));
    let pkey = match (site.abi, site.soft) {
        (AddressAbi::IpOnly, Soft::Rxe) => 0xffff,
        _ => 0,
    };
    assert_eq!(id.addresses().unwrap().pkey, pkey);
}

#[case(each_abi)]
fn the_devices_are_listed(site: &Site) {
    let devices = RdmaDevice::list().unwrap();
    let device = devices
        .iter()
        .find(|device| device.name == site.device)
        .unwrap();
    let transport = match site.soft {
        Soft::Rxe => Transport::RoCE,
        Soft::Siw => Transport::IWarp,
    };
    assert_eq!(device.transport, transport);
    let ports = device.ports().unwrap();
    assert_eq!(ports.len(), 1);
    assert_eq!(ports[0].number, 1);
    assert_eq!(ports[0].state, rdmacm_core::PortState::ACTIVE);
    assert_eq!(ports[0].netdev.as_ref().unwrap().name, site.netdev);
    let path = format!("/sys/class/infiniband/{}/node_guid", site.device);
    let guid = std::fs::read_to_string(path).unwrap();
    assert_eq!(device.guid.to_string(), guid.trim());
}
