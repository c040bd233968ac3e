//! Work that is done for an id away from the kernel, and services.

use rdmacm_abi::{EventNumber, QueryIbServiceResponse, ResolveIbService};
use rdmacm_core::{
    CommandNumber, Error, EventKind, Gid, IbService, PortSpace, ServiceName, ServiceRecord,
};
use zerocopy::FromZeros;

use crate::script::FIRST_ID;
use crate::{Fixture, errno};

#[test]
fn an_errand_ends_with_an_event_and_what_it_brings_is_taken_once() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    assert!(!id.is_resolving());
    let pending = id.begin_resolution().unwrap();
    assert!(id.is_resolving());
    assert_eq!(id.begin_resolution().unwrap_err(), Error::Busy);
    pending.finish(0, 7_u8);
    assert!(fixture.ucma.is_notified(), "whoever waits is to see it");
    assert_eq!(id.take_result::<u8>(), None, "its event was not read");
    let event = fixture.channel.try_next_event().unwrap().unwrap();
    assert_eq!(event.kind(), EventKind::AddrInfoResolved);
    assert!(!id.is_resolving());
    assert_eq!(
        id.begin_resolution().unwrap_err(),
        Error::Busy,
        "nobody took it"
    );
    assert_eq!(id.take_result::<u16>(), None, "of another type");
    assert_eq!(id.take_result::<u8>(), Some(7));
    assert_eq!(id.take_result::<u8>(), None);
    assert!(id.begin_resolution().is_ok());
}

#[test]
fn an_errand_that_fails_says_why_until_the_next() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    id.begin_resolution().unwrap().finish(-libc::ENOENT, ());
    let event = fixture.channel.try_next_event().unwrap().unwrap();
    assert_eq!(event.kind(), EventKind::AddrInfoError);
    assert_eq!(event.status(), -libc::ENOENT);
    let failure = id.resolution_failure().unwrap();
    assert_eq!(failure.raw_os_error(), Some(libc::ENOENT));
    let pending = id.begin_resolution().unwrap();
    assert_eq!(id.resolution_failure(), None);
    drop(pending);
    let event = fixture.channel.try_next_event().unwrap().unwrap();
    assert_eq!(event.status(), -libc::ECANCELED, "nobody waits for ever");
}

#[test]
fn what_is_left_is_told_of_by_somebody_else_and_what_is_withdrawn_by_nobody() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    id.begin_resolution().unwrap().hand_to_service(7_u8);
    assert!(fixture.channel.try_next_event().unwrap().is_none());
    assert!(!id.is_resolving());
    assert_eq!(id.begin_resolution().unwrap_err(), Error::Busy);
    assert_eq!(id.take_result::<u8>(), Some(7));
    id.begin_resolution().unwrap().cancel();
    assert!(fixture.channel.try_next_event().unwrap().is_none());
    assert!(!id.is_resolving());
    assert!(id.begin_resolution().is_ok());
}

#[test]
fn a_search_that_fails_takes_what_was_left_with_it() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::IB);
    id.begin_resolution().unwrap().hand_to_service(7_u8);
    id.resolve_ib_service(IbService::with_id(1)).unwrap();
    let _event = fixture.event(EventNumber::ADDRINFO_ERROR, -libc::ENODATA);
    assert!(id.resolution_failure().is_some());
    assert!(
        id.begin_resolution().is_ok(),
        "there is nothing to be taken"
    );
}

#[test]
fn an_errand_outlives_its_id_and_reports_to_nobody() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let pending = id.begin_resolution().unwrap();
    let (posted, handle) = (fixture.id(PortSpace::TCP), id.handle());
    posted.begin_resolution().unwrap().finish(0, ());
    drop((id, posted));
    pending.finish(0, ());
    assert!(fixture.channel.try_next_event().unwrap().is_none());
    assert_eq!(handle.begin_resolution().unwrap_err(), Error::IdGone);
    assert!(!handle.is_resolving() && handle.resolution_failure().is_none());
}

#[test]
fn a_service_is_one_search_at_a_time() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::IB);
    id.resolve_ib_service(IbService::with_id(0x77)).unwrap();
    let number = CommandNumber::RESOLVE_IB_SERVICE;
    let request: ResolveIbService = fixture.ucma.only(number);
    assert_eq!((request.id, request.service.service_id), (FIRST_ID, 0x77));
    assert!(id.is_resolving());
    let again = id.resolve_ib_service(IbService::with_id(0x78));
    assert_eq!(again, Err(Error::Busy));
    assert_eq!(id.begin_resolution().unwrap_err(), Error::Busy);
    let _event = fixture.event(EventNumber::ADDRINFO_RESOLVED, 0);
    assert!(!id.is_resolving());
    fixture.ucma.refuse(number, libc::EOPNOTSUPP);
    errno(
        id.resolve_ib_service(IbService::with_id(1)),
        libc::EOPNOTSUPP,
    );
    assert!(!id.is_resolving(), "it was refused");
}

/// An answer with so many records, of which it says that there are `count`.
fn records<const N: usize>(count: u32) -> QueryIbServiceResponse<N> {
    let mut answer = QueryIbServiceResponse::<N>::new_zeroed();
    answer.record_count.set(count);
    for (at, place) in (0_u64..).zip(&mut answer.records) {
        *place = (&ServiceRecord::new(at, Gid([3; 16]))).into();
    }
    answer
}

#[test]
fn records_are_asked_for_again_until_there_is_room_for_all() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::IB);
    fixture.ucma.answer(CommandNumber::QUERY, &records::<4>(4));
    assert_eq!(id.ib_service_records().unwrap().len(), 4);
    assert_eq!(fixture.sent().len(), 1);
    fixture.ucma.answer(CommandNumber::QUERY, &records::<4>(5));
    fixture.ucma.answer(CommandNumber::QUERY, &records::<32>(5));
    let found = id.ib_service_records().unwrap();
    let ids: Vec<_> = found.iter().map(|record| record.id).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4]);
    assert_eq!(fixture.sent().len(), 2);
}

#[test]
fn answers_about_services_that_cannot_be_right_are_errors() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::IB);
    fixture.ucma.answer(CommandNumber::QUERY, &records::<4>(0));
    let none = id.ib_service_records().unwrap_err();
    assert!(none.to_string().contains("no record"), "{none}");
    fixture.ucma.forget();
    for _ in 0..3 {
        fixture
            .ucma
            .answer(CommandNumber::QUERY, &records::<4>(u32::MAX));
    }
    let many = id.ib_service_records().unwrap_err();
    assert!(many.to_string().contains("more records"), "{many}");
    assert_eq!(fixture.sent().len(), 3);
    fixture.ucma.refuse(CommandNumber::QUERY, libc::ENOSYS);
    let unknown = id.ib_service_records().unwrap_err();
    assert!(matches!(unknown, Error::Unsupported { .. }), "{unknown}");
    fixture.ucma.refuse(CommandNumber::QUERY, libc::ENODATA);
    errno(id.ib_service_records(), libc::ENODATA);
}

#[test]
fn a_services_name_is_shown_as_text() {
    let name = ServiceName::try_from("storage").unwrap();
    assert_eq!(
        (name.as_bytes(), &*name.to_text()),
        (&b"storage"[..], "storage")
    );
    assert_eq!(
        format!("{name} {name:?}"),
        "storage ServiceName(\"storage\")"
    );
}

#[test]
fn a_kernel_that_knows_no_services_is_found_out() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::IB);
    let number = CommandNumber::RESOLVE_IB_SERVICE;
    for _ in 0..2 {
        fixture.ucma.refuse(number, libc::EINVAL);
    }
    let unknown = id.resolve_ib_service(IbService::with_id(1)).unwrap_err();
    assert!(matches!(unknown, Error::Unsupported { .. }), "{unknown}");
    assert_eq!(fixture.sent(), [number; 2]);
    assert!(!id.is_resolving());
}
