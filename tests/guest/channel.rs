//! Waiting for events, blocking and with a descriptor.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdmacm_core::ucma::{Attachment, KernelFile, UcmaFile, transact};
use rdmacm_core::{Error, EventKind, PortSpace, QpType};
use rdmacm_test_helpers::WatchedThread;
use rdmacm_tests::{SECOND, Site};
use rdmacm_tests_macros::case;
use zerocopy::FromZeros;

fn is_readable(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).unwrap() == 1
}

#[case]
fn the_descriptor_is_readable_while_an_event_is_pending(site: &Site) {
    let (channel, id) = site.id();
    assert!(!is_readable(channel.as_fd()));
    id.resolve_addr(None, site.v4(7471), SECOND).unwrap();
    let mut fds = [PollFd::new(channel.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, 30_000_u16).unwrap();
    assert!(is_readable(channel.as_fd()));
    assert!(channel.try_next_event().unwrap().is_some());
    assert!(!is_readable(channel.as_fd()));
}

/// What was there before the wait is found.
#[case]
fn a_wait_for_the_kernel_takes_what_is_pending(site: &Site) {
    let (channel, id) = site.id();
    channel.waker().wake();
    let woken = channel.next_kernel_event(None).unwrap_err();
    assert_eq!(woken, Error::Woken);
    id.begin_resolution().unwrap().finish(0);
    let event = channel.next_kernel_event(None).unwrap();
    assert_eq!(event.kind(), EventKind::AddrInfoResolved);
    let none = channel.next_kernel_event(Duration::from_millis(1));
    assert_eq!(none.unwrap_err(), Error::DeadlinePassed);
    id.resolve_addr(None, site.v4(7471), SECOND).unwrap();
    let event = channel.next_kernel_event(None).unwrap();
    assert_eq!(event.kind(), EventKind::AddrResolved);
}

#[case]
fn a_wake_up_makes_the_descriptor_readable_until_taken(site: &Site) {
    let channel = site.channel();
    channel.waker().wake();
    channel.waker().wake();
    assert!(is_readable(channel.as_fd()));
    assert_eq!(channel.try_next_event().unwrap_err(), Error::Woken);
    assert!(!is_readable(channel.as_fd()));
    assert!(channel.try_next_event().unwrap().is_none());
}

#[case]
fn a_waker_ends_a_wait(site: &Site) {
    let channel = site.channel();
    let waker = channel.waker();
    std::thread::scope(|scope| {
        let (tell, thread) = std::sync::mpsc::channel();
        let channel = &channel;
        let waiter = scope.spawn(move || {
            tell.send(WatchedThread::current()).unwrap();
            channel.next_event(None::<Duration>)
        });
        thread.recv().unwrap().wait_until_asleep();
        waker.wake();
        assert_eq!(waiter.join().unwrap().unwrap_err(), Error::Woken);
    });
}

/// A loop with constant events still sees a notification, and so does one that only
/// polls.
#[case]
fn a_wake_up_precedes_events(site: &Site) {
    let (channel, id) = site.id();
    id.resolve_addr(None, site.v4(7471), SECOND).unwrap();
    let mut fds = [PollFd::new(channel.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, 30_000_u16).unwrap();
    channel.waker().wake();
    let looked = channel.next_event(Duration::ZERO).unwrap_err();
    assert_eq!(looked, Error::Woken);
    assert!(channel.next_event(Duration::ZERO).is_ok());
}

#[case]
fn a_waker_outlives_its_channel(site: &Site) {
    let waker = site.channel().waker();
    waker.wake();
}

#[case]
fn a_wait_ends_at_its_deadline(site: &Site) {
    let channel = site.channel();
    let started = Instant::now();
    let wait = Duration::from_millis(50);
    assert_eq!(channel.next_event(wait).unwrap_err(), Error::DeadlinePassed);
    assert!(started.elapsed() >= wait);
    let past = channel.next_event(started).unwrap_err();
    assert_eq!(past, Error::DeadlinePassed);
}

#[case]
fn events_iterate_until_a_waker_ends_the_wait(site: &Site) {
    let (channel, id) = site.id();
    id.resolve_addr(None, site.v4(7471), SECOND).unwrap();
    let mut events = channel.events();
    let event = events.next().unwrap().unwrap();
    assert_eq!(event.kind(), EventKind::AddrResolved);
    channel.waker().wake();
    assert!(events.next().is_none());
}

#[case]
fn pending_events_end_with_an_empty_queue(site: &Site) {
    let channel = site.channel();
    assert_eq!(channel.pending().count(), 0);
    let id = site.resolved(&channel, site.v4(7471));
    id.resolve_route(SECOND).unwrap();
    let mut fds = [PollFd::new(channel.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, 30_000_u16).unwrap();
    let kinds: Vec<_> = channel
        .pending()
        .map(|event| event.unwrap().kind())
        .collect();
    assert_eq!(kinds, [EventKind::RouteResolved]);
}

#[case]
fn descriptors_are_closed_on_exec_and_do_not_block(_site: &Site) {
    let device = KernelFile::open().unwrap();
    for fd in [device.ucma_fd().unwrap(), device.readiness()] {
        let flags = fcntl(fd, FcntlArg::F_GETFD).unwrap();
        assert!(FdFlag::from_bits_retain(flags).contains(FdFlag::FD_CLOEXEC));
    }
    let ucma = device.ucma_fd().unwrap();
    let flags = fcntl(ucma, FcntlArg::F_GETFL).unwrap();
    assert!(OFlag::from_bits_retain(flags).contains(OFlag::O_NONBLOCK));
}

#[case]
fn an_unknown_port_space_is_refused(site: &Site) {
    let channel = site.channel();
    let error = channel.create_id(PortSpace::new(0x999)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    let words = error.to_string();
    assert!(words.contains("0x0999 (CREATE_ID): EINVAL"), "{words}");
    // No state of it remains.
    drop(channel.create_id(PortSpace::TCP).unwrap());
}

/// The kernel ignores the type and would report another one.
#[case]
fn a_port_space_has_its_own_qp_types(site: &Site) {
    let channel = site.channel();
    for (port_space, other, own) in [
        (PortSpace::TCP, QpType::UD, QpType::RC),
        (PortSpace::UDP, QpType::RC, QpType::UD),
    ] {
        let refused = channel.create_id_of_type(port_space, other);
        assert!(matches!(refused, Err(Error::InvalidInput { .. })));
        let id = channel.create_id(port_space).unwrap();
        assert_eq!(id.qp_type(), own);
    }
    let id = channel.create_id_of_type(PortSpace::IB, QpType::UC);
    assert_eq!(id.unwrap().qp_type(), QpType::UC);
}

/// `MIGRATE_ID` through a custom file: the only command that names a descriptor.
#[case]
fn an_id_moves_between_devices(site: &Site) {
    let (old, new) = (KernelFile::open().unwrap(), KernelFile::open().unwrap());
    let request = rdmacm_abi::CreateId::new(1, PortSpace::TCP, QpType::RC);
    let mut created = rdmacm_abi::CreateIdResponse::new_zeroed();
    transact(&old, &request, &mut created, Attachment::None).unwrap();
    let bind = rdmacm_abi::Bind::new(created.id, site.v4(0).socket_addr().unwrap().into());
    let mut nothing = rdmacm_abi::NoResponse;
    let foreign = transact(&new, &bind, &mut nothing, Attachment::None).unwrap_err();
    assert_eq!(foreign.raw_os_error(), Some(libc::EINVAL));
    let migrate = rdmacm_abi::MigrateId::new(created.id);
    let mut moved = rdmacm_abi::MigrateIdResponse::new_zeroed();
    let from = Attachment::OldChannel(&old);
    transact(&new, &migrate, &mut moved, from).unwrap();
    transact(&new, &bind, &mut nothing, Attachment::None).unwrap();
}
