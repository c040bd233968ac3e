//! Names resolved for an id: the channel reports completion.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdmacm_addrinfo::{AddrInfo, Directory, Error, Hints, NameError, ResolveAddrInfo};
use rdmacm_core::{AddressAbi, CmId, Event, EventChannel, EventKind};
use rdmacm_tests::{PATIENCE, SECOND, Site};

use super::private_etc::PrivateEtc;
use super::rc;
use rdmacm_tests_macros::case;

/// Begins to resolve the site's IPv4 address for an id.
fn begin(site: &Site, directory: &Directory, id: &CmId) {
    let node = site.v4.to_string();
    id.resolve_addrinfo(directory, node.as_str(), "7471", &rc())
        .unwrap();
}

#[track_caller]
fn hear(channel: &EventChannel, id: &CmId, kind: EventKind) -> Event {
    let event = channel.next_event(PATIENCE).unwrap();
    assert!(*event.id() == *id, "{event:?}");
    assert_eq!(event.kind(), kind, "{event:?}");
    event
}

#[case]
fn completion_makes_the_descriptor_readable(site: &Site) {
    let (channel, id) = site.id();
    begin(site, &Directory::new(), &id);
    let mut fds = [PollFd::new(channel.as_fd(), PollFlags::POLLIN)];
    let patience = PollTimeout::try_from(PATIENCE).unwrap();
    assert_eq!(poll(&mut fds, patience), Ok(1));
    let event = channel.try_next_event().unwrap().unwrap();
    assert_eq!(event.kind(), EventKind::AddrInfoResolved);
    assert_eq!((event.status(), event.failure()), (0, None));
    assert!(channel.try_next_event().unwrap().is_none());
    let mut fds = [PollFd::new(channel.as_fd(), PollFlags::POLLIN)];
    assert_eq!(poll(&mut fds, PollTimeout::ZERO), Ok(0));
}

#[case]
fn the_result_is_taken_once(site: &Site) {
    let (channel, id) = site.id();
    assert_eq!(id.query_addrinfo(), Err(Error::NothingResolved));
    let directory = Directory::new();
    begin(site, &directory, &id);
    hear(&channel, &id, EventKind::AddrInfoResolved);
    let node = site.v4.to_string();
    let blocking = directory.resolve(node.as_str(), "7471", &rc()).unwrap();
    let asked = id.query_addrinfo().unwrap();

    let told = |list: &[AddrInfo]| {
        let one = list.first().unwrap();
        (one.source, one.destination, one.via().cloned())
    };
    assert_eq!(told(&asked), told(&blocking));
    assert!(asked[0].is_reachable());
    assert_eq!(id.query_addrinfo(), Err(Error::NothingResolved));
}

#[case]
fn one_resolution_runs_until_its_result_is_taken(site: &Site) {
    let (channel, id) = site.id();
    let directory = Directory::new();
    let node = site.v4.to_string();
    let again = || id.resolve_addrinfo(&directory, node.as_str(), "7471", &rc());
    let busy = Err(Error::Rdma(rdmacm_core::Error::Busy));
    again().unwrap();
    assert_eq!(again(), busy);
    hear(&channel, &id, EventKind::AddrInfoResolved);
    assert_eq!(again(), busy);
    id.query_addrinfo().unwrap();
    again().unwrap();
    hear(&channel, &id, EventKind::AddrInfoResolved);
}

#[case]
fn a_failure_gives_the_cause_and_the_id_stays_usable(site: &Site) {
    let (channel, id) = site.id();
    let directory = Directory::new();
    PrivateEtc::new().run(|| {
        let begun = id.resolve_addrinfo(&directory, "nobody", "7471", &rc());
        begun.unwrap();
        let event = hear(&channel, &id, EventKind::AddrInfoError);
        assert_eq!(event.status(), -libc::ENOENT);
        let words = event.failure().unwrap().to_string();
        assert_eq!(
            words,
            "ADDRINFO_ERROR ENOENT: the name or the service is unknown"
        );
        let why = Err(Error::Name(NameError::NoName));
        assert_eq!(id.query_addrinfo(), why);
        assert_eq!(id.query_addrinfo(), Err(Error::NothingResolved));
        // Nobody need ask for a failure.
        for _ in 0..2 {
            let begun = id.resolve_addrinfo(&directory, "nobody", "7471", &rc());
            begun.unwrap();
            hear(&channel, &id, EventKind::AddrInfoError);
        }
    });
    begin(site, &directory, &id);
    hear(&channel, &id, EventKind::AddrInfoResolved);
    id.query_addrinfo().unwrap();
}

#[case]
fn an_invalid_lookup_starts_nothing(site: &Site) {
    let (channel, id) = site.id();
    let directory = Directory::new();
    let nothing = id.resolve_addrinfo(&directory, None, None, &Hints::rc());
    assert_eq!(nothing, Err(Error::NothingToResolve));
    let contradiction = id.resolve_addrinfo(
        &directory,
        "somebody",
        None,
        &Hints::rc().destination(site.v4(7)),
    );
    assert!(matches!(contradiction, Err(Error::Hints(_))));
    let nul = id.resolve_addrinfo(&directory, "some\0body", None, &Hints::rc());
    assert_eq!(nul, Err(Error::NulInText));
    begin(site, &directory, &id);
    hear(&channel, &id, EventKind::AddrInfoResolved);
    let gone = id.handle();
    drop(id);
    let begun = gone.resolve_addrinfo(&directory, "rxe", None, &rc());
    assert_eq!(begun, Err(Error::Rdma(rdmacm_core::Error::IdGone)));
    assert!(channel.try_next_event().unwrap().is_none());
}

/// The silent neighbour keeps the first resolution going for its whole deadline.
#[case]
fn destroying_the_id_cancels_the_resolution(site: &Site) {
    let channel = site.channel();
    let new = || channel.create_id(rdmacm_core::PortSpace::TCP).unwrap();
    let directory = Directory::new();
    let (given_up, kept) = (new(), new());
    let silent = site.silent.to_string();
    let short = rc().deadline(SECOND);
    for id in [&given_up, &kept] {
        id.resolve_addrinfo(&directory, silent.as_str(), "7471", &short)
            .unwrap();
    }
    let handle = given_up.handle();
    drop(given_up);
    assert_eq!(handle.query_addrinfo(), Err(Error::NothingResolved));
    // Both end at about the same time; only one is heard of.
    hear(&channel, &kept, EventKind::AddrInfoResolved);
    let list = kept.query_addrinfo().unwrap();
    assert!(!list[0].is_reachable());
    let later = channel.next_event(SECOND).unwrap_err();
    assert_eq!(later, rdmacm_core::Error::DeadlinePassed);
}

#[case]
fn its_event_moves_with_the_id(site: &Site) {
    let (old, id) = site.id();
    begin(site, &Directory::new(), &id);
    let mut fds = [PollFd::new(old.as_fd(), PollFlags::POLLIN)];
    let patience = PollTimeout::try_from(PATIENCE).unwrap();
    assert_eq!(poll(&mut fds, patience), Ok(1));
    let new = site.channel();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| new.next_event(PATIENCE).unwrap());
        id.migrate(&new).unwrap();
        let event = waiter.join().unwrap();
        assert_eq!(event.kind(), EventKind::AddrInfoResolved);
        assert!(*event.id() == id);
    });
    assert!(old.try_next_event().unwrap().is_none());
    id.query_addrinfo().unwrap();
}

/// A name resolved for it is no address of the id's.
#[case]
fn the_id_stays_unbound(site: &Site) {
    let (channel, id) = site.id();
    begin(site, &Directory::new(), &id);
    hear(&channel, &id, EventKind::AddrInfoResolved);
    assert_eq!(id.addresses().unwrap().destination, None);
    let list = id.query_addrinfo().unwrap();
    let to = list[0].destination.unwrap();
    id.resolve_addr(None, to, PATIENCE).unwrap();
    hear(&channel, &id, EventKind::AddrResolved);
}

#[case]
fn many_ids_resolve_in_parallel(site: &Site) {
    let channel = site.channel();
    let directory = Directory::new();
    let new = || channel.create_id(rdmacm_core::PortSpace::TCP).unwrap();
    let mut waiting: Vec<_> = std::iter::repeat_with(new).take(20).collect();
    for id in &waiting {
        begin(site, &directory, id);
    }
    while !waiting.is_empty() {
        let event = channel.next_event(PATIENCE).unwrap();
        assert_eq!(event.kind(), EventKind::AddrInfoResolved);
        let whose = waiting.iter().position(|id| *event.id() == *id).unwrap();
        assert!(waiting.swap_remove(whose).query_addrinfo().unwrap()[0].is_reachable());
    }
}

/// The one that waits for it ends at its deadline.
#[case]
fn a_silent_name_server_delays_nobody_else() {
    let address = Ipv4Addr::new(127, 0, 0, 13);
    let _server = UdpSocket::bind((address, 53)).unwrap();
    let etc = PrivateEtc::new()
        .file("nsswitch.conf", "hosts: files dns\n")
        .file("resolv.conf", &format!("nameserver {address}\n"))
        .file("hosts", "10.71.1.1 rxe\n");
    let site = Site::rxe(AddressAbi::AnyFamily);
    etc.run(|| {
        let channel = site.channel();
        let new = || channel.create_id(rdmacm_core::PortSpace::TCP).unwrap();
        let (slow, quick) = (new(), new());
        let directory = Directory::new();
        let deadline = 5 * SECOND;
        let started = Instant::now();
        let hints = rc().deadline(deadline);
        let begun = slow.resolve_addrinfo(&directory, "nobody.test", "7471", &hints);
        begun.unwrap();
        quick
            .resolve_addrinfo(&directory, "rxe", "7471", &rc())
            .unwrap();
        let begun = started.elapsed();
        assert!(begun < deadline, "{begun:?}");
        hear(&channel, &quick, EventKind::AddrInfoResolved);
        let event = hear(&channel, &slow, EventKind::AddrInfoError);
        let elapsed = started.elapsed();
        assert_eq!(event.status(), -libc::ETIMEDOUT);
        assert_eq!(slow.query_addrinfo(), Err(Error::LookupDeadline));
        let longest = 2 * deadline;
        assert!(elapsed >= deadline && elapsed < longest, "{elapsed:?}");
    });
}
