//! Waiting for events, and whom they reach.

use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use nix::sys::eventfd::EventFd;
use rdmacm_abi::{CreateId, DestroyId, EventNumber};
use rdmacm_core::ucma::UcmaFile;
use rdmacm_core::{CommandNumber, Deadline, Error, EventKind, PortSpace, QpType};

use crate::script::FIRST_ID;
use crate::{Fixture, errno, invalid};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn an_available_event_is_returned_without_a_wait() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let report = || {
        let event = fixture.ucma.event(EventNumber::ADDR_RESOLVED, 0);
        fixture.ucma.report(&event);
    };
    report();
    let event = fixture.channel.next_event(Duration::ZERO).unwrap();
    assert_eq!((event.kind(), event.id()), (EventKind::AddrResolved, &*id));
    assert_eq!(fixture.ucma.waits(), 0);
    report();
    // Otherwise the first wait of a channel comes before the read.
    fixture.channel.wait(None).unwrap();
    let waits = fixture.ucma.waits();
    let event = fixture.channel.next_event(Deadline::Never).unwrap();
    assert_eq!(event.kind(), EventKind::AddrResolved);
    assert_eq!(fixture.ucma.waits(), waits);
}

#[test]
fn a_wait_without_an_event_ends_at_its_deadline() {
    let fixture = Fixture::new();
    let begun = fixture.channel.now();
    let outcome = fixture.channel.next_event(SECOND);
    assert_eq!(outcome.unwrap_err(), Error::DeadlinePassed);
    assert_eq!(fixture.channel.now(), begun + SECOND);
    let waits = fixture.ucma.waits();
    let outcome = fixture.channel.next_event(begun);
    assert_eq!(outcome.unwrap_err(), Error::DeadlinePassed);
    assert_eq!(fixture.ucma.waits(), waits, "it has passed before");
    errno(fixture.channel.next_event(Deadline::Never), libc::EDEADLK);
}

#[test]
fn an_event_is_delivered_after_the_deadline_too() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    // From now on waits come before reads.
    let outcome = fixture.channel.next_event(SECOND);
    assert_eq!(outcome.unwrap_err(), Error::DeadlinePassed);
    for _ in 0..20 {
        let event = fixture.ucma.event(EventNumber::ADDR_RESOLVED, 0);
        fixture.ucma.report(&event);
        let event = fixture.channel.next_event(Duration::ZERO).unwrap();
        assert_eq!(event.id(), &*id);
    }
}

#[test]
fn a_wait_for_readiness_ends_with_an_event_or_its_deadline() {
    let fixture = Fixture::new();
    let begun = fixture.channel.now();
    assert_eq!(fixture.channel.wait(SECOND), Err(Error::DeadlinePassed));
    assert_eq!(fixture.channel.now(), begun + SECOND);
    let _id = fixture.id(PortSpace::TCP);
    let event = fixture.ucma.event(EventNumber::ADDR_RESOLVED, 0);
    fixture.ucma.report(&event);
    assert_eq!(fixture.channel.wait(SECOND), Ok(()));
    assert!(fixture.channel.try_next_event().unwrap().is_some());
    errno(fixture.channel.wait(Deadline::Never), libc::EDEADLK);
}

#[test]
fn a_wake_up_precedes_events_and_is_taken_once() {
    let fixture = Fixture::new();
    let _id = fixture.id(PortSpace::TCP);
    let event = fixture.ucma.event(EventNumber::ADDR_RESOLVED, 0);
    fixture.ucma.report(&event);
    fixture.channel.waker().wake();
    let outcome = fixture.channel.next_event(SECOND);
    assert_eq!(outcome.unwrap_err(), Error::Woken);
    assert!(fixture.channel.next_event(SECOND).is_ok());
    fixture.channel.waker().wake();
    assert_eq!(fixture.channel.wait(SECOND), Err(Error::Woken));
    fixture.channel.waker().wake();
    assert!(fixture.channel.pending().next().is_none());
    fixture.channel.waker().wake();
    assert!(fixture.channel.events().next().is_none());
}

#[test]
fn pending_ends_without_an_event_and_events_waits() {
    let fixture = Fixture::new();
    let _id = fixture.id(PortSpace::TCP);
    for number in [EventNumber::ADDR_RESOLVED, EventNumber::ROUTE_RESOLVED] {
        fixture.ucma.report(&fixture.ucma.event(number, 0));
    }
    let kinds = fixture.channel.pending().map(|event| event.unwrap().kind());
    let expected = [EventKind::AddrResolved, EventKind::RouteResolved];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
    let event = fixture.ucma.event(EventNumber::ADDR_RESOLVED, 0);
    fixture.ucma.report(&event);
    let mut events = fixture.channel.events();
    assert_eq!(events.next().unwrap().unwrap().kind(), expected[0]);
    errno(events.next().unwrap(), libc::EDEADLK);
}

#[test]
fn get_event_is_repeated_after_eintr_and_other_errors_are_returned() {
    let fixture = Fixture::new();
    let _id = fixture.id(PortSpace::TCP);
    fixture.ucma.fail_get_event(libc::EINTR);
    let event = fixture.ucma.event(EventNumber::ADDR_RESOLVED, 0);
    fixture.ucma.report(&event);
    assert!(fixture.channel.try_next_event().unwrap().is_some());
    fixture.ucma.fail_get_event(libc::EACCES);
    errno(fixture.channel.try_next_event(), libc::EACCES);
}

#[test]
fn the_descriptor_is_that_of_the_ucma_file() {
    let fixture = Fixture::new();
    let expected = fixture.ucma.readiness().as_raw_fd();
    assert_eq!(fixture.channel.as_raw_fd(), expected);
    assert_eq!(fixture.channel.as_fd().as_raw_fd(), expected);
}

#[test]
fn an_id_is_created_in_its_port_space_and_destroyed_when_dropped() {
    let fixture = Fixture::new();
    for (port_space, qp_type) in [
        (PortSpace::TCP, QpType::RC),
        (PortSpace::IB, QpType::RC),
        (PortSpace::UDP, QpType::UD),
        (PortSpace::IPOIB, QpType::UD),
    ] {
        let id = fixture.channel.create_id(port_space).unwrap();
        let request: CreateId = fixture.ucma.only(CommandNumber::CREATE_ID);
        assert_eq!((request.port_space, request.qp_type), (port_space, qp_type));
        assert_eq!((id.port_space(), id.qp_type()), (port_space, qp_type));
        drop(id);
        fixture.ucma.forget();
    }
    drop(fixture.id(PortSpace::TCP));
    let request: DestroyId = fixture.ucma.only(CommandNumber::DESTROY_ID);
    assert_eq!(request.id, FIRST_ID + 4);
}

#[test]
fn a_type_the_port_space_does_not_have_is_refused() {
    let fixture = Fixture::new();
    let create = |port_space, qp_type| fixture.channel.create_id_of_type(port_space, qp_type);
    invalid(create(PortSpace::TCP, QpType::UD), "another type");
    invalid(create(PortSpace::UDP, QpType::RC), "another type");
    assert!(create(PortSpace::TCP, QpType::RC).is_ok());
    let id = create(PortSpace::IB, QpType::UD).unwrap();
    assert_eq!(id.qp_type(), QpType::UD);
}

#[test]
fn an_id_that_the_kernel_refuses_to_create_is_unregistered() {
    let fixture = Fixture::new();
    fixture.ucma.refuse(CommandNumber::CREATE_ID, libc::EINVAL);
    let error = fixture.channel.create_id(PortSpace::TCP).unwrap_err();
    assert!(error.to_string().contains("port space"), "{error}");
    assert_eq!(fixture.sent(), [CommandNumber::CREATE_ID]);
}

#[test]
fn an_event_of_an_unknown_id_is_dropped_and_its_child_destroyed() {
    let fixture = Fixture::new();
    let gone = fixture.id(PortSpace::TCP);
    let mut request = fixture.ucma.event(EventNumber::CONNECT_REQUEST, 0);
    request.id = 77;
    let resolved = fixture.ucma.event(EventNumber::ADDR_RESOLVED, 0);
    drop(gone);
    let id = fixture.id(PortSpace::TCP);
    fixture.ucma.report(&resolved);
    fixture.ucma.report(&request);
    let event = fixture.event(EventNumber::ESTABLISHED, 0);
    assert_eq!(*event.id(), id);
    let destroyed: DestroyId = fixture.ucma.only(CommandNumber::DESTROY_ID);
    assert_eq!(destroyed.id, 77);
}

#[test]
fn a_flood_of_events_of_unknown_ids_is_dropped_in_batches() {
    let fixture = Fixture::new();
    let gone = fixture.id(PortSpace::TCP);
    let resolved = fixture.ucma.event(EventNumber::ADDR_RESOLVED, 0);
    drop(gone);
    let _id = fixture.id(PortSpace::TCP);
    for _ in 0..1000 {
        fixture.ucma.report(&resolved);
    }
    let event = fixture.ucma.event(EventNumber::ESTABLISHED, 0);
    fixture.ucma.report(&event);
    assert!(fixture.channel.try_next_event().unwrap().is_none());
    assert!(fixture.ucma.is_notified(), "there is more");
    assert!(fixture.channel.next_event(SECOND).is_ok());
}

#[test]
fn handles_name_their_id_and_outlive_it() {
    let fixture = Fixture::new();
    let (one, other) = (fixture.id(PortSpace::TCP), fixture.id(PortSpace::TCP));
    let handle = one.handle();
    assert!(handle == one && handle != other && handle == handle.clone());
    assert!(!handle.is_destroyed());
    drop(one);
    assert!(handle.is_destroyed() && handle != other);
    assert_eq!(handle.listen(1), Err(Error::IdDestroyed));
}

#[test]
fn a_connect_request_owns_its_child() {
    let fixture = Fixture::new();
    let listener = fixture.id(PortSpace::TCP);
    let mut request = fixture.ucma.event(EventNumber::CONNECT_REQUEST, 0);
    request.id = 91;
    fixture.ucma.report(&request);
    let mut event = fixture.channel.try_next_event().unwrap().unwrap();
    assert_eq!(*event.id(), listener);
    assert_eq!(event.child().unwrap().port_space(), PortSpace::TCP);
    let child = event.take_child().unwrap();
    assert!(event.child().is_none() && event.into_child().is_none());
    assert!(fixture.sent().is_empty());
    drop(child);
    let destroyed: DestroyId = fixture.ucma.only(CommandNumber::DESTROY_ID);
    assert_eq!(destroyed.id, 91);
}

#[test]
fn a_wait_with_another_descriptor_polls_it_too() {
    let fixture = Fixture::new();
    let channel = &fixture.channel;
    let other = EventFd::new().unwrap();
    assert_eq!(
        channel.wait_with(other.as_fd(), SECOND),
        Err(Error::DeadlinePassed)
    );
    assert_eq!(fixture.ucma.other(), Some(other.as_raw_fd()));
    channel.waker().wake();
    assert_eq!(channel.wait_with(other.as_fd(), SECOND), Err(Error::Woken));
    assert_eq!(channel.wait(SECOND), Err(Error::DeadlinePassed));
    assert_eq!(fixture.ucma.other(), None);
}

#[test]
fn a_simulated_clock_is_advanced_to_what_is_due_next() {
    let fixture = Fixture::new();
    let channel = &fixture.channel;
    assert_eq!(channel.next_due(), None);
    let begun = channel.now();
    let due = begun + SECOND;
    fixture.ucma.set_due(due);
    assert_eq!(channel.next_due(), Some(due));
    channel.advance_to(due);
    assert_eq!((channel.now(), channel.next_due()), (due, None));
    channel.advance_to(begun);
    assert_eq!(channel.now(), due);
}

#[test]
fn a_notification_is_repeated_until_no_event_is_left() {
    let fixture = Fixture::new();
    let _id = fixture.id(PortSpace::TCP);
    let event = fixture.ucma.event(EventNumber::ADDR_RESOLVED, 0);
    fixture.ucma.report(&event);
    assert!(fixture.channel.try_next_event().unwrap().is_some());
    assert!(
        !fixture.ucma.is_notified(),
        "the kernel's file is readable by itself"
    );
    fixture.ucma.notify();
    fixture.ucma.report(&event);
    assert!(fixture.channel.try_next_event().unwrap().is_some());
    assert!(fixture.ucma.is_notified());
    assert!(fixture.channel.try_next_event().unwrap().is_none());
    assert!(!fixture.ucma.is_notified());
}
