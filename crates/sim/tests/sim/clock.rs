//! Time, wake-ups and the descriptor.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdmacm_core::{Error, EventChannel, EventKind, PortSpace};
use rdmacm_test_helpers::WatchedThread;

use crate::pair::{Hosts, client_param, server_param};
use crate::{SECOND, TwoHosts, expect, resolved};

pub(crate) fn is_readable(channel: &EventChannel) -> bool {
    let mut fds = [PollFd::new(channel.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).unwrap() == 1
}

#[test]
fn a_deadline_takes_no_time() {
    let hosts = TwoHosts::new();
    let channel = hosts.channel();
    let (begun, year) = (channel.now(), Duration::from_secs(365 * 86_400));
    let real = Instant::now();
    assert_eq!(channel.next_event(year).unwrap_err(), Error::DeadlinePassed);
    assert_eq!(channel.now() - begun, year);
    assert_eq!(hosts.fabric.elapsed(), year);
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
fn timers_fire_as_the_clock_advances() {
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

#[test]
fn a_deadline_waits_for_a_thread_that_works() {
    let hosts = Hosts::roce();
    hosts.fabric.set_idle_time(Duration::from_secs(60));
    let channel = hosts.client.channel().unwrap();
    let listener = hosts.listen(1);
    thread::scope(|scope| {
        // The server does not wait for an event yet.
        let client = scope.spawn(|| {
            let id = hosts.routed(&channel);
            id.connect(client_param()).unwrap();
            let begun = channel.now();
            let event = channel.next_event(SECOND).unwrap();
            (event.kind(), channel.now() - begun)
        });
        while listener.channel.try_next_event().unwrap().is_none() {
            thread::yield_now();
        }
        // Dropped, the request is rejected.
        let rejected = (EventKind::Rejected, Duration::ZERO);
        assert_eq!(client.join().unwrap(), rejected);
    });
}

#[test]
fn the_clock_moves_for_the_earliest_of_all_waits() {
    let hosts = Hosts::roce();
    let channels = [&hosts.client, &hosts.server].map(|host| host.channel().unwrap());
    let begun = channels[0].now();
    thread::scope(|scope| {
        for (channel, seconds) in channels.iter().zip([1, 3]) {
            scope.spawn(move || {
                let wait = seconds * SECOND;
                assert_eq!(channel.next_event(wait).unwrap_err(), Error::DeadlinePassed);
                // The other one waits on.
                if seconds == 1 {
                    assert_eq!(channel.now() - begun, SECOND);
                }
            });
        }
    });
    assert_eq!(channels[0].now() - begun, 3 * SECOND);
}

#[test]
fn a_thread_that_has_not_used_the_fabric_yet_is_waited_for() {
    let hosts = Hosts::roce();
    hosts.fabric.set_idle_time(Duration::from_secs(60));
    let listener = hosts.listen(1);
    let channel = hosts.client.channel().unwrap();
    let begun = channel.now();
    thread::scope(|scope| {
        scope.spawn(|| {
            // Longer than a scheduler's time slice.
            let work = Instant::now();
            while work.elapsed() < Duration::from_millis(50) {
                std::hint::spin_loop();
            }
            let request = listener.channel.next_event(None).unwrap();
            let child = request.into_child().unwrap();
            child.accept(server_param()).unwrap();
        });
        let id = hosts.routed(&channel);
        id.connect(client_param()).unwrap();
        let event = channel.next_event(None).unwrap();
        assert_eq!(event.kind(), EventKind::ConnectResponse);
        assert_eq!(channel.now(), begun);
    });
}

#[test]
fn a_wait_moves_the_clock_if_nothing_happens() {
    let hosts = Hosts::roce();
    let channel = hosts.client.channel().unwrap();
    let _idle = hosts.server.channel().unwrap();
    let begun = channel.now();
    assert_eq!(
        channel.next_event(SECOND).unwrap_err(),
        Error::DeadlinePassed
    );
    assert_eq!(channel.now() - begun, SECOND);
}

#[test]
fn another_descriptor_ends_a_wait() {
    let hosts = Hosts::roce();
    let file = hosts.client.open().unwrap();
    let (reader, writer) = nix::unistd::pipe().unwrap();
    let begun = file.now();
    thread::scope(|scope| {
        let wait = scope.spawn(|| file.wait(None, Some(reader.as_fd())));
        nix::unistd::write(&writer, b"x").unwrap();
        assert!(!wait.join().unwrap().unwrap());
    });
    // It is readable already.
    assert!(
        !file
            .wait(Some(begun + SECOND), Some(reader.as_fd()))
            .unwrap()
    );
    assert_eq!(file.now(), begun);
}

#[test]
fn a_runtime_sees_what_is_due_and_advances() {
    let hosts = TwoHosts::new();
    hosts.fabric.set_subnet_admin_delay(2 * SECOND);
    let file = hosts.here.open().unwrap();
    let options = EventChannel::options().ucma(Arc::clone(&file));
    let channel = options.open().unwrap();
    let id = resolved(&channel);
    assert_eq!(file.next_due(), None);
    let begun = file.now();
    id.resolve_route(10 * SECOND).unwrap();
    assert_eq!(file.next_due(), Some(begun + 2 * SECOND));
    file.advance_to(begun + 2 * SECOND);
    assert!(is_readable(&channel));
    expect(&channel, EventKind::RouteResolved);
    file.advance_to(begun);
    assert_eq!(file.now(), begun + 2 * SECOND);
}

#[test]
fn a_thread_that_was_notified_acts_before_the_clock_moves() {
    let hosts = Hosts::roce();
    let listener = hosts.listen(1);
    let channel = hosts.client.channel().unwrap();
    let id = hosts.routed(&channel);
    let begun = channel.now();
    thread::scope(|scope| {
        let (thread, threads) = mpsc::channel();
        let listener = &listener;
        scope.spawn(move || {
            thread.send(WatchedThread::current()).unwrap();
            let request = listener.channel.next_event(None).unwrap();
            let child = request.into_child().unwrap();
            child.accept(server_param()).unwrap();
        });
        // Both files are waited on when the request arrives.
        threads.recv().unwrap().wait_until_asleep();
        id.connect(client_param()).unwrap();
        let event = channel.next_event(None).unwrap();
        assert_eq!(event.kind(), EventKind::ConnectResponse);
        assert_eq!(channel.now(), begun);
    });
}

/// Computes until it is dropped.
struct Load(Arc<AtomicBool>);

impl Load {
    /// More threads than there are processors.
    fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        for _ in 0..8 {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || while !is_over.load(Ordering::Relaxed) {});
        }
        Self(is_over)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_busy_machine_does_not_move_the_clock() {
    let hosts = Hosts::roce();
    hosts.fabric.set_idle_time(Duration::from_millis(1));
    let channels = [(); 2].map(|()| hosts.client.channel().unwrap());
    let _idle = hosts.server.channel().unwrap();
    let _load = Load::start();
    thread::scope(|scope| {
        let [one, other] = &channels;
        let waiting = scope.spawn(|| other.next_event(3600 * SECOND));
        for _ in 0..20 {
            let begun = one.now();
            one.next_event(SECOND).unwrap_err();
            // Between two waits: the others compute, and the clock does not move.
            for _ in 0..4 {
                thread::yield_now();
            }
            assert_eq!(one.now() - begun, SECOND);
        }
        hosts.fabric.advance(3600 * SECOND);
        waiting.join().unwrap().unwrap_err();
    });
}

/// A descriptor that is polled moves no clock: the program moves it to what is due.
#[test]
fn a_program_that_polls_moves_the_clock() {
    let hosts = TwoHosts::new();
    hosts.fabric.set_subnet_admin_delay(2 * SECOND);
    let channel = hosts.channel();
    let id = resolved(&channel);
    let begun = channel.now();
    id.resolve_route(10 * SECOND).unwrap();
    let mut fds = [PollFd::new(channel.as_fd(), PollFlags::POLLIN)];
    assert_eq!(poll(&mut fds, PollTimeout::from(50_u8)), Ok(0));
    assert_eq!(channel.now(), begun);
    while !is_readable(&channel) {
        channel.advance_to(channel.next_due().unwrap());
    }
    let event = channel.try_next_event().unwrap().unwrap();
    assert_eq!(event.kind(), EventKind::RouteResolved);
    assert_eq!(channel.now() - begun, 2 * SECOND);
}
