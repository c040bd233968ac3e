//! Commands of kernels after Linux 6.1, and detecting their absence.

use std::sync::Arc;

use rdmacm_abi::{
    CreateId, CreateIdResponse, EventNumber, EventResponse, GetEvent, NoResponse, WriteCmEvent,
};
use rdmacm_core::ucma::{Attachment, KernelFile, transact};
use rdmacm_core::{CommandNumber, Error, EventKind, IbService, PortSpace, QpType};
use rdmacm_tests::{Counting, Site, expect};
use rdmacm_tests_macros::case;
use zerocopy::FromZeros;

/// Whether the guest's kernel is the newer one.
pub(crate) fn is_new() -> bool {
    std::env::var("RDMACM_KERNEL").unwrap() != "stock"
}

fn assert_unsupported<T: std::fmt::Debug>(outcome: Result<T, Error>, number: CommandNumber) {
    let error = outcome.unwrap_err();
    assert!(
        matches!(error, Error::Unsupported { command, .. } if command == number),
        "{error}"
    );
    assert!(error.to_string().contains("6.18"), "{error}");
}

#[case(covers(WRITE_CM_EVENT))]
fn written_events_arrive_in_order(site: &Site) {
    let (channel, id) = site.id();
    if !is_new() {
        let outcome = id.write_event(0, 1);
        assert_unsupported(outcome, CommandNumber::WRITE_CM_EVENT);
        return assert!(channel.try_next_event().unwrap().is_none());
    }
    let written = [(0, 0), (-5, u64::MAX), (i32::MAX, 1), (i32::MIN, 7_147)];
    for (status, argument) in written {
        id.write_event(status, argument).unwrap();
    }
    for (status, argument) in written {
        let event = channel.try_next_event().unwrap().unwrap();
        assert_eq!(event.kind(), EventKind::User);
        assert!(*event.id() == id);
        assert_eq!((event.status(), event.argument()), (status, Some(argument)));
        assert_eq!(event.failure().is_some(), status != 0);
    }
    assert!(channel.try_next_event().unwrap().is_none());
}

#[case]
fn a_written_event_moves_with_its_id(site: &Site) {
    let (_old, id) = site.id();
    if !is_new() {
        let outcome = id.write_event(0, 1);
        return assert_unsupported(outcome, CommandNumber::WRITE_CM_EVENT);
    }
    id.write_event(0, 1).unwrap();
    let new = site.channel();
    id.migrate(&new).unwrap();
    id.write_event(0, 2).unwrap();
    for argument in [1, 2] {
        assert_eq!(expect(&new, EventKind::User).argument(), Some(argument));
    }
}

#[case]
fn a_written_event_is_dropped_with_its_id(site: &Site) {
    let (channel, id) = site.id();
    if !is_new() {
        let outcome = id.write_event(0, 1);
        return assert_unsupported(outcome, CommandNumber::WRITE_CM_EVENT);
    }
    id.write_event(0, 1).unwrap();
    drop(id);
    assert!(channel.try_next_event().unwrap().is_none());
}

/// This library writes no such events, but another one in the process may: so raw
/// commands write and read it.
#[case(covers(INTERNAL))]
fn an_internal_event_has_its_own_kind(_site: &Site) {
    const UID: u64 = 0x7147;
    let device = KernelFile::open().unwrap();
    let create = CreateId::new(UID, PortSpace::TCP, QpType::RC);
    let mut created = CreateIdResponse::new_zeroed();
    transact(&device, &create, &mut created, Attachment::None).unwrap();
    let write = WriteCmEvent::new(created.id, EventNumber::INTERNAL, -5, 7);
    let written = transact(&device, &write, &mut NoResponse, Attachment::None);
    if !is_new() {
        let errno = written.unwrap_err().raw_os_error();
        return assert_eq!(errno, Some(libc::EINVAL));
    }
    written.unwrap();
    let mut event = EventResponse::new_zeroed();
    transact(&device, &GetEvent::new(), &mut event, Attachment::None).unwrap();
    assert_eq!(EventKind::from(event.event), EventKind::Internal);
    assert_eq!((event.uid, event.status(), event.param.arg()), (UID, -5, 7));
}

#[case(covers(RESOLVE_IB_SERVICE))]
fn services_need_infiniband(site: &Site) {
    let (channel, id) = site.id();
    let resolve = || id.resolve_ib_service(IbService::with_id(0x7147));
    if !is_new() {
        assert_unsupported(resolve(), CommandNumber::RESOLVE_IB_SERVICE);
        id.bind(site.v4(0)).unwrap();
        return assert_unsupported(resolve(), CommandNumber::RESOLVE_IB_SERVICE);
    }
    let error = resolve().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    assert!(error.to_string().contains("no device"), "{error}");
    id.bind(site.v4(0)).unwrap();
    let error = resolve().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP));
    assert!(error.to_string().contains("only InfiniBand"), "{error}");
    assert!(channel.try_next_event().unwrap().is_none());
}

#[case]
fn an_unresolved_service_has_no_records(site: &Site) {
    let (_channel, id) = site.id();
    let records = id.ib_service_records();
    if !is_new() {
        return assert_unsupported(records, CommandNumber::RESOLVE_IB_SERVICE);
    }
    let error = records.unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENODATA));
    assert!(error.to_string().contains("no service"), "{error}");
}

/// Each newer command is probed once in a channel's life.
#[case]
fn an_old_kernel_is_probed_once(site: &Site) {
    let device = Arc::new(Counting::new());
    let channel = site.channel_on(&device);
    let ids = [(); 2].map(|()| channel.create_id(PortSpace::TCP).unwrap());
    let probes = usize::from(!is_new());
    for id in ids.iter().chain(&ids) {
        assert_eq!(id.write_event(0, 1).is_ok(), is_new());
        // The id is not bound, so the newer kernel fails as an older one would, and is
        // probed too.
        id.resolve_ib_service(IbService::with_id(1)).unwrap_err();
    }
    assert_eq!(device.of(CommandNumber::WRITE_CM_EVENT), 4 + probes);
    assert_eq!(device.of(CommandNumber::RESOLVE_IB_SERVICE), 4 + 1);
}
