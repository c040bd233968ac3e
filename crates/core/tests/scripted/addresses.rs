//! What the kernel knows about an id: in both dialects, and as long as it holds.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use rdmacm_abi::{
    AddressFamily, Be16, Be64, EventNumber, IpSlot, QueryAddr, QueryAddrResponse,
    QueryPathResponse, QueryRouteResponse, SockaddrIb, SockaddrStorage,
};
use rdmacm_core::{
    AddressAbi, Addresses, CmAddr, CommandNumber, Error, Gid, IdHandle, PathData, PortSpace, Result,
};
use zerocopy::{FromBytes as _, FromZeros, IntoBytes as _};

use crate::script::FIRST_ID;
use crate::{Fixture, errno};

fn v4(host: u8, port: u16) -> std::net::SocketAddr {
    ([10, 0, 0, host], port).into()
}

/// An id of 10.0.0.1:7 with the peer 10.0.0.2:8, on port 3 of the device 5.
fn answer() -> QueryAddrResponse {
    QueryAddrResponse {
        node_guid: Be64::new(0x1122),
        port_number: 3,
        pkey: Be16::new(0x8001),
        source_size: 16,
        destination_size: 16,
        source: v4(1, 7).into(),
        destination: v4(2, 8).into(),
        device_index: 5,
        ..QueryAddrResponse::new_zeroed()
    }
}

fn route_answer() -> QueryRouteResponse {
    let mut answer = QueryRouteResponse {
        node_guid: Be64::new(0x1122),
        source: v4(1, 7).into(),
        destination: v4(2, 8).into(),
        path_count: 1,
        port_number: 3,
        device_index: 5,
        ..QueryRouteResponse::new_zeroed()
    };
    answer.paths[0].pkey = Be16::new(0x8001);
    answer.paths[0].source_gid = [1; 16];
    answer.paths[0].destination_gid = [2; 16];
    answer
}

fn check(id: &IdHandle, addresses: Addresses) {
    assert_eq!(addresses.source, Some(v4(1, 7).into()));
    assert_eq!(addresses.destination, Some(v4(2, 8).into()));
    let device = addresses.device.unwrap();
    assert_eq!((device.index, device.guid.0), (Some(5), 0x1122));
    assert_eq!((addresses.port_number, addresses.pkey), (3, 0x8001));
    assert_eq!(id.local_addr(), Ok(addresses.source));
    assert_eq!(id.peer_addr(), Ok(addresses.destination));
    assert_eq!((id.local_port(), id.peer_port()), (Ok(7), Ok(8)));
}

#[test]
fn addresses_are_queried_once_and_every_field_is_read() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    fixture.ucma.answer(CommandNumber::QUERY, &answer());
    check(&id, id.addresses().unwrap());
    let request: QueryAddr = fixture.ucma.only(CommandNumber::QUERY);
    assert_eq!(request, QueryAddr::new(FIRST_ID));
}

#[test]
fn the_ip_commands_return_the_same_addresses() {
    let fixture = Fixture::with(AddressAbi::IpOnly);
    let id = fixture.id(PortSpace::TCP);
    for _ in 0..3 {
        fixture
            .ucma
            .answer(CommandNumber::QUERY_ROUTE, &route_answer());
    }
    check(&id, id.addresses().unwrap());
    let gids = id.gids().unwrap();
    assert_eq!(gids.source, Gid([1; 16]));
    assert_eq!(gids.destination, Some(Gid([2; 16])));
    let paths = id.path_records().unwrap();
    assert_eq!((paths.len(), paths[0].record.pkey), (1, 0x8001));
    assert_eq!(fixture.sent().len(), 3);
}

#[test]
fn an_unbound_id_has_no_address_and_no_device() {
    for address_abi in [AddressAbi::AnyFamily, AddressAbi::IpOnly] {
        let fixture = Fixture::with(address_abi);
        let id = fixture.id(PortSpace::TCP);
        let addresses = id.addresses().unwrap();
        assert_eq!((addresses.source, addresses.destination), (None, None));
        assert_eq!((addresses.device, addresses.port_number), (None, 0));
        assert_eq!((id.local_port(), id.peer_port()), (Ok(0), Ok(0)));
        assert_eq!(id.gids().unwrap().destination, None);
        assert!(id.path_records().unwrap().is_empty());
        assert_eq!(id.rdma_device(), Ok(None));
    }
}

#[test]
fn a_wildcard_destination_is_not_a_peer() {
    for (wildcard, size) in [
        (
            SockaddrStorage::from(std::net::SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))),
            16,
        ),
        (
            std::net::SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)).into(),
            28,
        ),
        (SockaddrIb::default().into(), 48),
    ] {
        let fixture = Fixture::new();
        let id = fixture.id(PortSpace::TCP);
        let answer = QueryAddrResponse {
            destination: wildcard,
            destination_size: size,
            ..answer()
        };
        fixture.ucma.answer(CommandNumber::QUERY, &answer);
        assert_eq!(id.peer_addr(), Ok(None));
    }
}

fn gid_slot(bytes: [u8; 16]) -> SockaddrStorage {
    SockaddrIb {
        family: AddressFamily::IB,
        addr: bytes,
        ..SockaddrIb::default()
    }
    .into()
}

#[test]
fn gids_are_read_and_a_mapped_wildcard_is_not_a_peer() {
    let gids = |destination: SockaddrStorage| {
        let fixture = Fixture::new();
        let id = fixture.id(PortSpace::TCP);
        let answer = QueryAddrResponse {
            source: gid_slot([9; 16]),
            destination,
            ..answer()
        };
        fixture.ucma.answer(CommandNumber::QUERY, &answer);
        id.gids()
    };
    let both = gids(gid_slot([8; 16])).unwrap();
    assert_eq!(both.source, Gid([9; 16]));
    assert_eq!(both.destination, Some(Gid([8; 16])));
    let mapped = Ipv4Addr::UNSPECIFIED.to_ipv6_mapped().octets();
    assert_eq!(gids(gid_slot(mapped)).unwrap().destination, None);
    assert_eq!(gids(gid_slot([0; 16])).unwrap().destination, None);
    let strange = gids(v4(1, 7).into()).unwrap_err();
    assert!(matches!(strange, Error::Answer { .. }), "{strange}");
}

#[test]
fn an_invalid_answer_is_an_error() {
    let ask = |answer: QueryAddrResponse| {
        let fixture = Fixture::new();
        let id = fixture.id(PortSpace::TCP);
        fixture.ucma.answer(CommandNumber::QUERY, &answer);
        id.addresses()
    };
    let wrong_size = QueryAddrResponse {
        source_size: 28,
        ..answer()
    };
    let no_family = QueryAddrResponse {
        destination: SockaddrStorage::ZERO,
        ..answer()
    };
    for answer in [wrong_size, no_family] {
        let error = ask(answer).unwrap_err();
        assert!(matches!(error, Error::Answer { .. }), "{error}");
    }
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let mut paths = QueryPathResponse::<1>::new_zeroed();
    paths.path_count.set(u32::MAX);
    fixture.ucma.answer(CommandNumber::QUERY, &paths);
    let error = id.path_records().unwrap_err();
    assert!(error.to_string().contains("more paths"), "{error}");
}

#[test]
fn paths_are_read_in_their_order() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let mut answer = QueryPathResponse::<2>::new_zeroed();
    answer.path_count.set(2);
    answer.paths[0].record.traffic_class = 11;
    answer.paths[1].record.traffic_class = 12;
    fixture.ucma.answer(CommandNumber::QUERY, &answer);
    let paths = id.path_records().unwrap();
    let classes = paths.iter().map(|path| path.record.traffic_class);
    assert_eq!(classes.collect::<Vec<_>>(), [11, 12]);
}

#[test]
fn an_old_kernel_leaves_the_devices_index_out() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let answer = QueryAddrResponse {
        device_index: u32::MAX,
        ..answer()
    };
    fixture.ucma.answer(CommandNumber::QUERY, &answer);
    let device = id.addresses().unwrap().device.unwrap();
    assert_eq!(device.index, None);
}

/// What an id does that may change where it is.
const MOVES: [fn(&IdHandle) -> Result<()>; 7] = [
    |id| id.bind(CmAddr::from(v4(1, 7))),
    |id| id.resolve_addr(None, CmAddr::from(v4(2, 8)), Duration::from_secs(1)),
    |id| id.resolve_route(Duration::from_secs(1)),
    |id| id.listen(1),
    |id| id.connect(rdmacm_core::ConnParam::new()),
    |id| id.establish(),
    |id| id.reject(b""),
];

#[test]
fn an_answer_is_cached_until_a_command_changes_it() {
    for step in MOVES {
        let fixture = Fixture::new();
        let id = fixture.id(PortSpace::TCP);
        let ask = || {
            fixture.ucma.forget();
            id.addresses().unwrap();
            fixture.sent().len()
        };
        assert_eq!([ask(), ask()], [1, 0]);
        step(&id).unwrap();
        assert_eq!([ask(), ask()], [1, 0]);
    }
}

#[test]
fn events_and_refused_commands_invalidate_the_cache() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let ask = || {
        fixture.ucma.forget();
        id.addresses().unwrap();
        fixture.sent().len()
    };
    assert_eq!([ask(), ask()], [1, 0]);
    let _event = fixture.event(EventNumber::ADDR_RESOLVED, 0);
    assert_eq!([ask(), ask()], [1, 0]);
    fixture.ucma.refuse(CommandNumber::BIND, libc::EADDRINUSE);
    errno(id.bind(CmAddr::from(v4(1, 7))), libc::EADDRINUSE);
    assert_eq!([ask(), ask()], [1, 0]);
}

#[test]
fn a_resolved_route_changes_the_path_records_alone() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let queries = |query: &dyn Fn()| {
        fixture.ucma.forget();
        query();
        fixture.sent().len()
    };
    let addresses = || assert!(id.addresses().unwrap().device.is_none());
    let path_records = || {
        fixture
            .ucma
            .answer(CommandNumber::QUERY, &QueryPathResponse::<0>::new_zeroed());
        assert!(id.path_records().unwrap().is_empty());
    };
    assert_eq!(
        [&addresses, &path_records as &dyn Fn()].map(queries),
        [1, 1]
    );
    assert_eq!(
        [&addresses, &path_records as &dyn Fn()].map(queries),
        [0, 0]
    );
    let _event = fixture.event(EventNumber::ROUTE_RESOLVED, 0);
    assert_eq!(
        [&addresses, &path_records as &dyn Fn()].map(queries),
        [0, 1]
    );
}

#[test]
fn a_resolved_route_changes_the_addresses_of_the_ip_commands() {
    let fixture = Fixture::with(AddressAbi::IpOnly);
    let id = fixture.id(PortSpace::TCP);
    for pkey in [0x8001, 0x8002] {
        let mut answer = route_answer();
        answer.paths[0].pkey = Be16::new(pkey);
        fixture.ucma.answer(CommandNumber::QUERY_ROUTE, &answer);
        assert_eq!([(); 2].map(|()| id.addresses().unwrap().pkey), [pkey; 2]);
        let _event = fixture.event(EventNumber::ROUTE_RESOLVED, 0);
    }
}

#[test]
fn an_ip_slot_may_be_empty() {
    let fixture = Fixture::with(AddressAbi::IpOnly);
    let id = fixture.id(PortSpace::TCP);
    let answer = QueryRouteResponse {
        destination: IpSlot::ZERO,
        ..route_answer()
    };
    fixture.ucma.answer(CommandNumber::QUERY_ROUTE, &answer);
    assert_eq!(id.peer_addr(), Ok(None));
}

/// The source's GID is its IP address.
fn roce_answer() -> QueryRouteResponse {
    let mut answer = route_answer();
    answer.paths[0].pkey = Be16::new(0xffff);
    answer.paths[0].source_gid = Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped().octets();
    answer
}

#[test]
fn a_route_on_roce_is_one_query() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let queried = CommandNumber::QUERY_ROUTE;
    for with_path_records in [true, false] {
        fixture.ucma.forget();
        fixture.ucma.answer(queried, &roce_answer());
        let route = id.route(with_path_records).unwrap();
        assert_eq!(route.addresses.source, Some(v4(1, 7).into()));
        assert_eq!(route.addresses.destination, Some(v4(2, 8).into()));
        assert_eq!(route.addresses.device.unwrap().index, Some(5));
        // As the query of addresses has it.
        assert_eq!(route.addresses.pkey, 0);
        assert_eq!(route.gids.unwrap().destination, Some(Gid([2; 16])));
        assert_eq!(route.path_records.len(), usize::from(with_path_records));
        for path in &route.path_records {
            assert_eq!(path.flags, PathData::USABLE);
            assert_eq!((path.record.pkey, path.record.dgid), (0xffff, Gid([2; 16])));
        }
        assert_eq!(fixture.sent().len(), 1);
    }
}

/// The answer has no room for all that the caller has set.
#[test]
fn the_callers_path_on_roce_is_queried_apart() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let path = rdmacm_abi::PathRecordData::new_zeroed();
    id.set_ib_path(&[PathData::from(&path)]).unwrap();
    let queried = CommandNumber::QUERY_ROUTE;
    fixture.ucma.answer(queried, &roce_answer());
    let mut paths = QueryPathResponse::<1>::new_zeroed();
    paths.path_count.set(1);
    paths.paths[0].record.service_id = 9.into();
    fixture.ucma.answer(CommandNumber::QUERY, &paths);
    let route = id.route(true).unwrap();
    assert_eq!(route.path_records[0].record.service_id, 9);
}

#[test]
fn path_records_elsewhere_are_queried_apart() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    // On iWARP the answer counts none, whatever the caller has set.
    for (path_count, is_given) in [(1, false), (0, true)] {
        if is_given {
            let path = rdmacm_abi::PathRecordData::new_zeroed();
            id.set_ib_path(&[PathData::from(&path)]).unwrap();
        }
        fixture.ucma.forget();
        let answer = QueryRouteResponse {
            path_count,
            ..route_answer()
        };
        fixture.ucma.answer(CommandNumber::QUERY_ROUTE, &answer);
        let mut paths = QueryPathResponse::<1>::new_zeroed();
        paths.path_count.set(1);
        paths.paths[0].record.destination_gid = [9; 16];
        fixture.ucma.answer(CommandNumber::QUERY, &paths);
        let route = id.route(true).unwrap();
        assert_eq!(route.addresses.pkey, 0x8001);
        assert_eq!(route.gids.unwrap().source, Gid([1; 16]));
        assert_eq!(route.path_records[0].record.dgid, Gid([9; 16]));
        assert_eq!(fixture.sent().len(), 2);
    }
}

#[test]
fn a_route_without_path_records_is_one_query() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let answer = QueryRouteResponse {
        path_count: 0,
        ..route_answer()
    };
    fixture.ucma.answer(CommandNumber::QUERY_ROUTE, &answer);
    let route = id.route(true).unwrap();
    assert!(route.gids.is_some() && route.path_records.is_empty());
    assert_eq!(fixture.sent(), [CommandNumber::QUERY_ROUTE]);
}

#[test]
fn a_route_with_more_paths_than_there_may_be_is_refused() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    for path_count in [3, u32::MAX] {
        let answer = QueryRouteResponse {
            path_count,
            ..roce_answer()
        };
        fixture.ucma.answer(CommandNumber::QUERY_ROUTE, &answer);
        assert!(matches!(id.route(true), Err(Error::Answer { .. })));
    }
}

#[test]
fn a_route_between_native_addresses_is_queried_step_by_step() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let native = SockaddrIb {
        family: AddressFamily::IB,
        addr: [7; 16],
        ..SockaddrIb::default()
    };
    let answer = QueryAddrResponse {
        source_size: 48,
        source: native.into(),
        destination_size: 48,
        destination: native.into(),
        ..answer()
    };
    let without_ip = QueryRouteResponse {
        source: IpSlot::ZERO,
        ..route_answer()
    };
    // After `resolve_ib_service` of an id that was bound to an IP address.
    let mut with_native_peer = route_answer();
    let mut slot = [0; size_of::<IpSlot>()];
    slot[..2].copy_from_slice(AddressFamily::IB.as_bytes());
    with_native_peer.destination = IpSlot::read_from_bytes(&slot).unwrap();
    for without_addresses in [without_ip, with_native_peer] {
        fixture.ucma.forget();
        fixture
            .ucma
            .answer(CommandNumber::QUERY_ROUTE, &without_addresses);
        fixture.ucma.answer(CommandNumber::QUERY, &answer);
        fixture.ucma.answer(CommandNumber::QUERY, &answer);
        let route = id.route(false).unwrap();
        assert!(matches!(route.addresses.source, Some(CmAddr::Ib(_))));
        assert!(matches!(route.addresses.destination, Some(CmAddr::Ib(_))));
        assert_eq!(route.gids.unwrap().source, Gid([7; 16]));
        assert_eq!(fixture.sent().len(), 3);
    }
}
