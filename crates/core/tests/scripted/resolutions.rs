//! Address resolution outside the kernel, and services.

use rdmacm_abi::{EventNumber, QueryIbServiceResponse, ResolveIbService};
use rdmacm_core::{
    CommandNumber, Error, EventKind, Gid, IbService, PortSpace, ServiceName, ServiceRecord,
};
use zerocopy::FromZeros;

use crate::script::FIRST_ID;
use crate::{Fixture, errno};

#[test]
fn a_resolution_ends_with_an_event() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    assert!(!id.is_resolving());
    let pending = id.begin_resolution().unwrap();
    assert!(id.is_resolving());
    assert_eq!(id.begin_resolution().unwrap_err(), Error::Busy);
    pending.finish(0);
    assert!(
        fixture.ucma.is_notified(),
        "a waiting caller must check for it"
    );
    assert_eq!(
        id.begin_resolution().unwrap_err(),
        Error::Busy,
        "the event was not read"
    );
    assert!(Error::Busy.to_string().contains("event"), "{}", Error::Busy);
    let event = fixture.channel.try_next_event().unwrap().unwrap();
    assert_eq!(event.kind(), EventKind::AddrInfoResolved);
    assert!(!id.is_resolving());
    assert!(id.begin_resolution().is_ok());
}

#[test]
fn a_failure_has_its_status() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    id.begin_resolution().unwrap().finish(-libc::ENOENT);
    let event = fixture.channel.try_next_event().unwrap().unwrap();
    assert_eq!(event.kind(), EventKind::AddrInfoError);
    assert_eq!(event.status(), -libc::ENOENT);
    drop(id.begin_resolution().unwrap());
    let event = fixture.channel.try_next_event().unwrap().unwrap();
    assert_eq!(
        event.status(),
        -libc::ECANCELED,
        "a dropped resolution ends"
    );
}

#[test]
fn a_cancelled_resolution_has_no_event() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    id.begin_resolution().unwrap().cancel();
    assert!(fixture.channel.try_next_event().unwrap().is_none());
    assert!(!id.is_resolving());
    assert!(id.begin_resolution().is_ok());
}

#[test]
fn the_outcome_of_a_service_is_kept() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::IB);
    let service = || id.resolve_ib_service(IbService::with_id(1));
    let unknown = service().unwrap();
    assert_eq!(unknown.outcome(), None);
    let event = fixture.event(EventNumber::ADDRINFO_ERROR, -libc::ENODATA);
    let failure = Some(Err(event.failure().unwrap()));
    assert_eq!(unknown.outcome(), failure);

    let known = service().unwrap();
    assert_eq!(known.outcome(), None);
    let _event = fixture.event(EventNumber::ADDRINFO_RESOLVED, 0);
    id.begin_resolution().unwrap().finish(-libc::ENOENT);
    let _event = fixture.channel.try_next_event().unwrap().unwrap();
    id.begin_resolution().unwrap().cancel();
    assert_eq!(
        (unknown.outcome(), known.outcome()),
        (failure, Some(Ok(())))
    );
}

#[test]
fn records_are_those_of_the_last_service() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::IB);
    let service = || id.resolve_ib_service(IbService::with_id(1));
    let first = service().unwrap();
    let _event = fixture.event(EventNumber::ADDRINFO_RESOLVED, 0);
    let number = CommandNumber::RESOLVE_IB_SERVICE;
    fixture.ucma.refuse(number, libc::EOPNOTSUPP);
    errno(service(), libc::EOPNOTSUPP);
    fixture.ucma.answer(CommandNumber::QUERY, &records::<4>(1));
    assert_eq!(first.records().unwrap().len(), 1);

    let second = service().unwrap();
    fixture.ucma.answer(CommandNumber::QUERY, &records::<4>(1));
    assert_eq!(first.records(), Err(Error::Superseded));
    let _event = fixture.event(EventNumber::ADDRINFO_RESOLVED, 0);
    fixture.ucma.answer(CommandNumber::QUERY, &records::<4>(2));
    assert_eq!(second.records().unwrap().len(), 2);
    assert_eq!(first.outcome(), second.outcome());
    drop(id);
    assert_eq!(second.records(), Err(Error::IdDestroyed));
}

#[test]
fn a_resolution_that_outlives_its_id_reports_no_event() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let pending = id.begin_resolution().unwrap();
    let (posted, handle) = (fixture.id(PortSpace::TCP), id.handle());
    posted.begin_resolution().unwrap().finish(0);
    drop((id, posted));
    pending.finish(0);
    assert!(fixture.channel.try_next_event().unwrap().is_none());
    assert_eq!(handle.begin_resolution().unwrap_err(), Error::IdDestroyed);
    assert!(!handle.is_resolving());
}

#[test]
fn an_id_resolves_one_service_at_a_time() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::IB);
    id.resolve_ib_service(IbService::with_id(0x77)).unwrap();
    let number = CommandNumber::RESOLVE_IB_SERVICE;
    let request: ResolveIbService = fixture.ucma.only(number);
    assert_eq!((request.id, request.service.service_id), (FIRST_ID, 0x77));
    assert!(id.is_resolving());
    let again = id.resolve_ib_service(IbService::with_id(0x78));
    assert_eq!(again.unwrap_err(), Error::Busy);
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
fn records_are_queried_again_with_more_space_until_all_fit() {
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
fn invalid_answers_about_services_are_errors() {
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
fn a_service_name_is_displayed_as_text() {
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
fn a_kernel_without_services_is_detected() {
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
