//! Names resolved for an id, whose channel reports completion.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdmacm_addrinfo::{
    AddrInfo, AddrInfoResolution, AddrInfoResolver, Error, Hints, NameError, ResolveAddrInfo,
};
use rdmacm_core::{AddressAbi, CmId, Event, EventChannel, EventKind};
use rdmacm_tests::{PATIENCE, SECOND, Site};

use super::private_etc::PrivateEtc;
use super::rc;
use rdmacm_tests_macros::case;

/// Begins to resolve the site's IPv4 address for an id.
fn begin(site: &Site, resolver: &AddrInfoResolver, id: &CmId) -> AddrInfoResolution {
    let node = site.v4.to_string();
    let begun = id.resolve_addrinfo(resolver, node.as_str(), "7471", &rc());
    begun.unwrap()
}

#[track_caller]
fn expect(channel: &EventChannel, id: &CmId, kind: EventKind) -> Event {
    let event = channel.next_event(PATIENCE).unwrap();
    assert!(*event.id() == *id, "{event:?}");
    assert_eq!(event.kind(), kind, "{event:?}");
    event
}

#[case]
fn completion_makes_the_descriptor_readable(site: &Site) {
    let (channel, id) = site.id();
    let _resolution = begin(site, &AddrInfoResolver::new(), &id);
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
    let resolver = AddrInfoResolver::new();
    let mut resolution = begin(site, &resolver, &id);
    expect(&channel, &id, EventKind::AddrInfoResolved);
    let node = site.v4.to_string();
    let blocking = resolver.resolve(node.as_str(), "7471", &rc()).unwrap();
    let by_event = resolution.take_result().unwrap();

    let summary = |list: &[AddrInfo]| {
        let one = list.first().unwrap();
        (one.source, one.destination, one.device_port().cloned())
    };
    assert_eq!(summary(&by_event), summary(&blocking));
    assert!(by_event[0].is_reachable());
    assert_eq!(resolution.take_result(), Err(Error::NothingResolved));
}

#[case]
fn one_resolution_runs_until_its_event_is_read(site: &Site) {
    let (channel, id) = site.id();
    let resolver = AddrInfoResolver::new();
    let node = site.v4.to_string();
    let again = || id.resolve_addrinfo(&resolver, node.as_str(), "7471", &rc());
    let busy = Err(Error::Rdma(rdmacm_core::Error::Busy));
    let mut first = again().unwrap();
    assert_eq!(again().map(drop), busy);
    expect(&channel, &id, EventKind::AddrInfoResolved);
    let mut second = again().unwrap();
    expect(&channel, &id, EventKind::AddrInfoResolved);
    assert_eq!(
        first.take_result().unwrap().len(),
        second.take_result().unwrap().len()
    );
}

#[case]
fn a_failure_gives_the_cause_and_the_id_stays_usable(site: &Site) {
    let (channel, id) = site.id();
    let resolver = AddrInfoResolver::new();
    PrivateEtc::new().run(|| {
        let begun = id.resolve_addrinfo(&resolver, "nobody", "7471", &rc());
        let mut resolution = begun.unwrap();
        let event = expect(&channel, &id, EventKind::AddrInfoError);
        assert_eq!(event.status(), -libc::ENOENT);
        let words = event.failure().unwrap().to_string();
        assert_eq!(
            words,
            "ADDRINFO_ERROR ENOENT: the name or the service is unknown"
        );
        let why = Err(Error::Name(NameError::NoName));
        assert_eq!(resolution.take_result(), why);
        assert_eq!(resolution.take_result(), Err(Error::NothingResolved));
        // A failure can be left unread.
        for _ in 0..2 {
            let begun = id.resolve_addrinfo(&resolver, "nobody", "7471", &rc());
            drop(begun.unwrap());
            expect(&channel, &id, EventKind::AddrInfoError);
        }
    });
    let mut resolution = begin(site, &resolver, &id);
    expect(&channel, &id, EventKind::AddrInfoResolved);
    resolution.take_result().unwrap();
}

#[case]
fn an_invalid_lookup_starts_nothing(site: &Site) {
    let (channel, id) = site.id();
    let resolver = AddrInfoResolver::new();
    let nothing = id.resolve_addrinfo(&resolver, None, None, &Hints::rc());
    assert_eq!(nothing.map(drop), Err(Error::NothingToResolve));
    let contradiction = id.resolve_addrinfo(
        &resolver,
        "somebody",
        None,
        &Hints::rc().destination(site.v4(7)),
    );
    assert!(matches!(contradiction, Err(Error::Hints(_))));
    let nul = id.resolve_addrinfo(&resolver, "some\0body", None, &Hints::rc());
    assert_eq!(nul.map(drop), Err(Error::NulInText));
    let _resolution = begin(site, &resolver, &id);
    expect(&channel, &id, EventKind::AddrInfoResolved);
    let gone = id.handle();
    drop(id);
    let begun = gone.resolve_addrinfo(&resolver, "rxe", None, &rc());
    let gone = Err(Error::Rdma(rdmacm_core::Error::IdDestroyed));
    assert_eq!(begun.map(drop), gone);
    assert!(channel.try_next_event().unwrap().is_none());
}

/// The silent neighbour makes the first resolution last until its deadline.
#[case]
fn destroying_the_id_cancels_the_resolution(site: &Site) {
    let channel = site.channel();
    let new = || channel.create_id(rdmacm_core::PortSpace::TCP).unwrap();
    let resolver = AddrInfoResolver::new();
    let (given_up, kept) = (new(), new());
    let silent = site.silent.to_string();
    let short = rc().deadline(SECOND);
    let [mut abandoned, mut resolution] = [&given_up, &kept].map(|id| {
        let begun = id.resolve_addrinfo(&resolver, silent.as_str(), "7471", &short);
        begun.unwrap()
    });
    drop(given_up);
    assert_eq!(abandoned.take_result(), Err(Error::NothingResolved));
    // Both end at about the same time, and only one is reported.
    expect(&channel, &kept, EventKind::AddrInfoResolved);
    let list = resolution.take_result().unwrap();
    assert!(!list[0].is_reachable());
    let later = channel.next_event(SECOND).unwrap_err();
    assert_eq!(later, rdmacm_core::Error::DeadlinePassed);
}

#[case]
fn its_event_moves_with_the_id(site: &Site) {
    let (old, id) = site.id();
    let mut resolution = begin(site, &AddrInfoResolver::new(), &id);
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
    resolution.take_result().unwrap();
}

/// Resolving a name for an id does not bind it.
#[case]
fn the_id_stays_unbound(site: &Site) {
    let (channel, id) = site.id();
    let mut resolution = begin(site, &AddrInfoResolver::new(), &id);
    expect(&channel, &id, EventKind::AddrInfoResolved);
    assert_eq!(id.addresses().unwrap().destination, None);
    let list = resolution.take_result().unwrap();
    let to = list[0].destination.unwrap();
    id.resolve_addr(None, to, PATIENCE).unwrap();
    expect(&channel, &id, EventKind::AddrResolved);
}

#[case]
fn many_ids_resolve_in_parallel(site: &Site) {
    let channel = site.channel();
    let resolver = AddrInfoResolver::new();
    let new = || channel.create_id(rdmacm_core::PortSpace::TCP).unwrap();
    let ids: Vec<_> = std::iter::repeat_with(new).take(20).collect();
    let mut waiting: Vec<_> = ids
        .iter()
        .map(|id| (id, begin(site, &resolver, id)))
        .collect();
    while !waiting.is_empty() {
        let event = channel.next_event(PATIENCE).unwrap();
        assert_eq!(event.kind(), EventKind::AddrInfoResolved);
        let index = waiting.iter().position(|(id, _)| *event.id() == **id);
        let (_, mut resolution) = waiting.swap_remove(index.unwrap());
        assert!(resolution.take_result().unwrap()[0].is_reachable());
    }
}

/// A waiting resolution ends at its deadline.
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
        let resolver = AddrInfoResolver::new();
        let deadline = 5 * SECOND;
        let started = Instant::now();
        let hints = rc().deadline(deadline);
        let begun = slow.resolve_addrinfo(&resolver, "nobody.test", "7471", &hints);
        let mut silent = begun.unwrap();
        let begun = quick.resolve_addrinfo(&resolver, "rxe", "7471", &rc());
        drop(begun.unwrap());
        let begun = started.elapsed();
        assert!(begun < deadline, "{begun:?}");
        expect(&channel, &quick, EventKind::AddrInfoResolved);
        let event = expect(&channel, &slow, EventKind::AddrInfoError);
        let elapsed = started.elapsed();
        assert_eq!(event.status(), -libc::ETIMEDOUT);
        assert_eq!(silent.take_result(), Err(Error::LookupDeadline));
        let longest = 2 * deadline;
        assert!(elapsed >= deadline && elapsed < longest, "{elapsed:?}");
    });
}
