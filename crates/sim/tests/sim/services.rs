//! Services of the subnet administrator.

use std::time::Duration;

use rdmacm_abi::{IbService, NoResponse, QueryIbService, QueryIbServiceResponse, ResolveRoute};
use rdmacm_core::ucma::{Attachment, transact};
use rdmacm_core::{
    CmAddr, CmId, CommandNumber, Error, EventChannel, EventFailure, EventKind, IbAddr, PortSpace,
    ServiceRecord,
};
use rdmacm_sim::{KernelVersion, SubnetAdmin};
use zerocopy::FromZeros;

use crate::{GID, PEER, SECOND, TwoHosts, errno, expect, gid, resolved};

const SERVICE: u64 = 0x1000_0000_0000_7147;

fn bound(channel: &EventChannel) -> CmId {
    let id = channel.create_id(PortSpace::IB).unwrap();
    id.bind(IbAddr::new(gid(GID))).unwrap();
    id
}

fn named(id: u64, name: &str) -> ServiceRecord {
    let mut record = ServiceRecord::new(id, gid(PEER));
    record.name = name.try_into().unwrap();
    record
}

#[test]
fn a_service_is_found_by_id_and_by_name() {
    let hosts = TwoHosts::new();
    let storage = named(SERVICE, "storage");
    hosts.fabric.register_service(storage.clone());
    hosts.fabric.register_service(named(SERVICE + 1, "other"));
    let channel = hosts.channel();
    let by_name = IbService::with_name(b"storage").unwrap();
    for service in [IbService::with_id(SERVICE), by_name] {
        let id = bound(&channel);
        id.resolve_ib_service(service).unwrap();
        expect(&channel, EventKind::AddrInfoResolved);
        let records = id.ib_service_records().unwrap();
        assert_eq!(records, std::slice::from_ref(&storage));
        // The first record is where the id goes.
        let Some(CmAddr::Ib(peer)) = id.peer_addr().unwrap() else {
            panic!("{:?}", id.peer_addr());
        };
        assert_eq!((peer.gid, peer.service_id), (gid(PEER), SERVICE));
        id.resolve_route(SECOND).unwrap();
        expect(&channel, EventKind::RouteResolved);
        let record = id.path_records().unwrap()[0].record;
        assert_eq!((record.dgid, record.service_id), (gid(PEER), SERVICE));
    }
}

#[test]
fn every_record_is_returned() {
    for count in [1, 3, 4, 5, 32, 33, 372] {
        let hosts = TwoHosts::new();
        for number in 0..count {
            let mut record = ServiceRecord::new(SERVICE, gid(PEER));
            record.data.longs[0] = number;
            hosts.fabric.register_service(record);
        }
        let channel = hosts.channel();
        let id = bound(&channel);
        id.resolve_ib_service(IbService::with_id(SERVICE)).unwrap();
        expect(&channel, EventKind::AddrInfoResolved);
        let records = id.ib_service_records().unwrap();
        let numbers: Vec<_> = records.iter().map(|record| record.data.longs[0]).collect();
        assert_eq!(numbers, (0..count).collect::<Vec<_>>());
    }
}

#[test]
fn more_than_an_answer_carries_is_an_error() {
    let hosts = TwoHosts::new();
    for _ in 0..373 {
        hosts
            .fabric
            .register_service(ServiceRecord::new(SERVICE, gid(PEER)));
    }
    let channel = hosts.channel();
    let id = bound(&channel);
    id.resolve_ib_service(IbService::with_id(SERVICE)).unwrap();
    expect(&channel, EventKind::AddrInfoResolved);
    let error = id.ib_service_records().unwrap_err();
    assert!(matches!(error, Error::Answer { .. }), "{error}");
}

#[test]
fn an_answer_without_room_for_a_record_is_left_as_it_was() {
    let hosts = TwoHosts::new();
    hosts
        .fabric
        .register_service(ServiceRecord::new(SERVICE, gid(PEER)));
    let device = hosts.here.open().unwrap();
    let options = EventChannel::options().ucma(std::sync::Arc::clone(&device));
    let channel = options.open().unwrap();
    let id = bound(&channel);
    id.resolve_ib_service(IbService::with_id(SERVICE)).unwrap();
    expect(&channel, EventKind::AddrInfoResolved);
    let mut answer = QueryIbServiceResponse::new_zeroed();
    let ask = QueryIbService::<0>::new(0);
    transact(device.as_ref(), &ask, &mut answer, Attachment::None).unwrap();
    assert_eq!(answer.record_count.get(), 0);
}

#[test]
fn an_unknown_service_is_no_data_and_the_id_may_ask_again() {
    let hosts = TwoHosts::new();
    let channel = hosts.channel();
    let id = bound(&channel);
    let ask = || id.resolve_ib_service(IbService::with_id(SERVICE));
    ask().unwrap();
    let event = channel.next_event(SECOND).unwrap();
    assert_eq!(event.kind(), EventKind::AddrInfoError);
    assert_eq!(event.failure().unwrap().raw_os_error(), Some(libc::ENODATA));
    errno(id.ib_service_records(), libc::ENODATA);
    hosts
        .fabric
        .register_service(ServiceRecord::new(SERVICE, gid(PEER)));
    ask().unwrap();
    expect(&channel, EventKind::AddrInfoResolved);
    errno(ask(), libc::EINVAL);
}

#[test]
fn a_refusal_and_silence_are_different_errors() {
    let hosts = TwoHosts::new();
    hosts
        .fabric
        .register_service(ServiceRecord::new(SERVICE, gid(PEER)));
    let channel = hosts.channel();
    let ask = |subnet_admin| {
        hosts.fabric.set_subnet_admin(subnet_admin);
        let id = bound(&channel);
        let begun = channel.now();
        id.resolve_ib_service(IbService::with_id(SERVICE)).unwrap();
        let event = channel.next_event(None).unwrap();
        let errno = event.failure().and_then(EventFailure::raw_os_error);
        (errno, channel.now() - begun)
    };
    let refused = (Some(libc::EINVAL), Duration::ZERO);
    assert_eq!(ask(SubnetAdmin::Refuses), refused);
    let silent = (Some(libc::ETIMEDOUT), Duration::from_secs(2));
    assert_eq!(ask(SubnetAdmin::Silent), silent);
    hosts
        .fabric
        .set_subnet_admin_delay(Duration::from_millis(1500));
    let late = (None, Duration::from_millis(1500));
    assert_eq!(ask(SubnetAdmin::Answers), late);
    hosts.fabric.set_subnet_admin_delay(Duration::from_secs(2));
    let just_in_time = (None, Duration::from_secs(2));
    assert_eq!(ask(SubnetAdmin::Answers), just_in_time);
    hosts.fabric.set_subnet_admin_delay(Duration::from_secs(3));
    assert_eq!(ask(SubnetAdmin::Answers), silent);
}

#[test]
fn only_a_bound_id_may_ask() {
    let hosts = TwoHosts::new();
    let channel = hosts.channel();
    let id = channel.create_id(PortSpace::IB).unwrap();
    let service = IbService::with_id(SERVICE);
    errno(id.resolve_ib_service(service), libc::EINVAL);
    // Bound, but to no port.
    id.bind(IbAddr::new("::".parse().unwrap())).unwrap();
    errno(id.resolve_ib_service(service), libc::EINVAL);
    let resolved = resolved(&channel);
    errno(resolved.resolve_ib_service(service), libc::EINVAL);
}

#[test]
fn linux_6_1_does_not_know_services() {
    let mut hosts = TwoHosts::new();
    hosts.here = hosts.here.kernel_version(KernelVersion::Linux6_1);
    let channel = hosts.channel();
    let id = bound(&channel);
    let unknown = |error: Error, number| {
        let is_it = matches!(error, Error::Unsupported { command, .. } if command == number);
        assert!(is_it, "{error}");
    };
    let error = id.resolve_ib_service(IbService::with_id(SERVICE));
    unknown(error.unwrap_err(), CommandNumber::RESOLVE_IB_SERVICE);
    let error = id.ib_service_records();
    unknown(error.unwrap_err(), CommandNumber::RESOLVE_IB_SERVICE);
    let error = id.write_event(0, 1);
    unknown(error.unwrap_err(), CommandNumber::WRITE_CM_EVENT);
}

#[test]
fn a_response_for_a_destroyed_id_is_dropped() {
    let hosts = TwoHosts::new();
    hosts
        .fabric
        .register_service(ServiceRecord::new(SERVICE, gid(PEER)));
    hosts.fabric.set_subnet_admin_delay(SECOND);
    let device = hosts.here.open().unwrap();
    let options = EventChannel::options().ucma(std::sync::Arc::clone(&device));
    let channel = options.open().unwrap();
    let id = bound(&channel);
    id.resolve_ib_service(IbService::with_id(SERVICE)).unwrap();
    let begun = hosts.fabric.now();
    drop(id);
    // The kernel does not cancel the query.
    assert_eq!(hosts.fabric.now() - begun, SECOND);
    let id = resolved(&channel);
    id.resolve_route(SECOND * 2).unwrap();
    let begun = hosts.fabric.now();
    drop(id);
    assert_eq!(hosts.fabric.now(), begun);
    // It has the number of the one that asked.
    let next = bound(&channel);
    hosts.fabric.advance(SECOND);
    assert!(channel.try_next_event().unwrap().is_none());
    errno(next.ib_service_records(), libc::ENODATA);
    let route = ResolveRoute::new(0, 1000);
    let early = transact(device.as_ref(), &route, &mut NoResponse, Attachment::None);
    assert_eq!(early.unwrap_err().raw_os_error(), Some(libc::EINVAL));
}
