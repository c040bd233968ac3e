//! A caller that waits on the new channel.

use std::os::fd::AsFd;

use nix::poll::PollTimeout;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use rdmacm_core::{Error, EventKind};
use rdmacm_tests::{PATIENCE, SECOND, Site, expect};

use super::wait_for_an_event;
use rdmacm_tests_macros::case;

/// Whether the thread already waits or is about to: both must see the event.
#[case]
fn a_waiting_thread_receives_moved_events(site: &Site) {
    let new = site.channel();
    for _ in 0..20 {
        let (old, id) = site.id();
        id.resolve_addr(None, site.v4(7471), PATIENCE).unwrap();
        wait_for_an_event(&old);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| expect(&new, EventKind::AddrResolved));
            id.migrate(&new).unwrap();
            assert!(*waiting.join().unwrap().id() == id);
        });
    }
}

#[case]
fn a_poller_receives_moved_events(site: &Site) {
    let new = site.channel();
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).unwrap();
    let edges = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
    epoll.add(new.as_fd(), EpollEvent::new(edges, 7)).unwrap();
    let ready = |timeout: PollTimeout| {
        let mut events = [EpollEvent::empty()];
        epoll.wait(&mut events, timeout).unwrap() == 1
    };
    for _ in 0..3 {
        assert!(!ready(PollTimeout::ZERO));
        let (old, id) = site.id();
        id.resolve_addr(None, site.v4(7471), PATIENCE).unwrap();
        wait_for_an_event(&old);
        id.migrate(&new).unwrap();
        assert!(ready(PollTimeout::from(30_000_u16)));
        assert!(*expect(&new, EventKind::AddrResolved).id() == id);
        assert!(new.try_next_event().unwrap().is_none());
    }
}

/// The kernel notifies for none of them; threads that each take one event read them
/// all.
#[case]
fn several_moved_events_are_all_received(site: &Site) {
    let new = site.channel();
    let olds = [(); 3].map(|()| site.id());
    for (old, id) in &olds {
        id.resolve_addr(None, site.v4(7471), PATIENCE).unwrap();
        wait_for_an_event(old);
    }
    std::thread::scope(|scope| {
        let readers = [(); 3].map(|()| scope.spawn(|| expect(&new, EventKind::AddrResolved)));
        for (_, id) in &olds {
            id.migrate(&new).unwrap();
        }
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[case]
fn the_descriptor_is_quiet_after_reading(site: &Site) {
    let (_old, id) = site.id();
    let new = site.channel();
    id.migrate(&new).unwrap();
    // The notification is there without an event.
    assert!(new.try_next_event().unwrap().is_none());
    let outcome = new.next_event(SECOND / 100);
    assert_eq!(outcome.unwrap_err(), Error::DeadlinePassed);
}
