//! Time, wake-ups and the descriptor.

use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdmacm_core::{Error, EventChannel, EventKind, PortSpace};

use crate::{SECOND, TwoHosts, expect, resolved};

fn is_readable(channel: &EventChannel) -> bool {
    let mut fds = [PollFd::new(channel.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).unwrap() == 1
}

#[test]
fn a_deadline_takes_no_time() {
    let channel = TwoHosts::new().channel();
    let (begun, year) = (channel.now(), Duration::from_secs(365 * 86_400));
    let real = Instant::now();
    assert_eq!(channel.next_event(year).unwrap_err(), Error::DeadlinePassed);
    assert_eq!(channel.now() - begun, year);
    assert!(real.elapsed() < Duration::from_secs(60));
}

#[test]
fn the_descriptor_is_readable_while_there_is_an_event() {
    let channel = TwoHosts::new().channel();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    assert!(!is_readable(&channel));
    id.write_event(0, 7).unwrap();
    id.write_event(0, 8).unwrap();
    for argument in [7, 8] {
        assert!(is_readable(&channel));
        let event = channel.try_next_event().unwrap().unwrap();
        assert_eq!(event.kind(), EventKind::User);
        assert_eq!(event.argument(), Some(argument));
    }
    assert!(!is_readable(&channel));
    id.write_event(0, 9).unwrap();
    drop(id);
    assert!(!is_readable(&channel));
}

#[test]
fn a_wait_ends_at_its_deadline_and_not_with_what_is_due_later() {
    let hosts = TwoHosts::new();
    hosts.fabric.set_subnet_admin_delay(5 * SECOND);
    let channel = hosts.channel();
    let id = resolved(&channel);
    let begun = channel.now();
    id.resolve_route(10 * SECOND).unwrap();
    let early = channel.next_event(2 * SECOND);
    assert_eq!(early.unwrap_err(), Error::DeadlinePassed);
    assert_eq!(channel.now() - begun, 2 * SECOND);
    // What is due at the deadline is in time.
    let event = channel.next_event(3 * SECOND).unwrap();
    assert_eq!(event.kind(), EventKind::RouteResolved);
    assert_eq!(channel.now() - begun, 5 * SECOND);
}

#[test]
fn what_is_due_is_heard_when_time_passes() {
    let hosts = TwoHosts::new();
    hosts.fabric.set_subnet_admin_delay(2 * SECOND);
    let channel = hosts.channel();
    let id = resolved(&channel);
    id.resolve_route(10 * SECOND).unwrap();
    hosts.fabric.advance(SECOND);
    assert!(!is_readable(&channel));
    hosts.fabric.advance(SECOND);
    assert!(is_readable(&channel));
    expect(&channel, EventKind::RouteResolved);
}

#[test]
fn a_waker_ends_a_wait() {
    let channel = TwoHosts::new().channel();
    let waker = channel.waker();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| channel.next_event(None));
        waker.wake();
        assert_eq!(waiter.join().unwrap().unwrap_err(), Error::Woken);
    });
    assert!(!is_readable(&channel));
    waker.wake();
    assert!(is_readable(&channel));
    assert_eq!(channel.try_next_event().unwrap_err(), Error::Woken);
}

#[test]
fn an_event_ends_a_wait_of_another_thread() {
    let channel = TwoHosts::new().channel();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| channel.next_event(None));
        id.write_event(0, 7).unwrap();
        assert_eq!(waiter.join().unwrap().unwrap().argument(), Some(7));
    });
}
