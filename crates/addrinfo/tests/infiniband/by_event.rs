//! Resolving for an id, on a simulated fabric.

use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdmacm_addrinfo::{
    AddrInfoFlags, AddrInfoResolver, Error, Hints, Host, HostQuery, NameError, NameResolver,
    ResolveAddrInfo,
};
use rdmacm_core::{
    CmAddr, CmId, CommandNumber, Error as CoreError, Event, EventChannel, EventKind, IbAddr,
    IbService, PortSpace, ServiceRecord, Transport,
};
use rdmacm_sim::{Adapter, Fabric, KernelVersion, Port, SubnetAdmin};

use crate::fabric::{HERE, SERVICE, THERE, channel, fabric, gid, resolver};

fn bound(channel: &EventChannel) -> CmId {
    let id = channel.create_id(PortSpace::IB).unwrap();
    id.bind(IbAddr::new(gid(HERE))).unwrap();
    id
}

fn service() -> Hints {
    Hints::new().subnet_administrator()
}

#[track_caller]
fn expect(channel: &EventChannel, id: &CmId, kind: EventKind) -> i32 {
    let event = channel.next_event(Duration::from_secs(60)).unwrap();
    assert!(*event.id() == *id, "{event:?}");
    assert_eq!(event.kind(), kind, "{event:?}");
    event.status()
}

/// Waits for an event of another thread by the machine's clock: that of the simulation must
/// not move meanwhile.
fn wait_readable(channel: &EventChannel) {
    let mut fds = [PollFd::new(channel.as_fd(), PollFlags::POLLIN)];
    assert_eq!(poll(&mut fds, PollTimeout::NONE), Ok(1));
}

fn next(channel: &EventChannel) -> Event {
    loop {
        wait_readable(channel);
        // The descriptor may be readable without an event.
        if let Some(event) = channel.try_next_event().unwrap() {
            return event;
        }
    }
}

const BUSY: Result<(), Error> = Err(Error::Rdma(CoreError::Busy));

#[test]
fn the_kernel_finds_a_service_for_the_id() {
    let (_fabric, here) = fabric();
    let channel = channel(&here).unwrap();
    let id = bound(&channel);
    let resolver = AddrInfoResolver::new();
    let begin = || id.resolve_addrinfo(&resolver, None, "storage", &service());
    let mut resolution = begin().unwrap();
    assert_eq!(begin().map(drop), BUSY);
    assert_eq!(resolution.take_result(), Err(Error::NothingResolved));
    expect(&channel, &id, EventKind::AddrInfoResolved);
    let list = resolution.take_result().unwrap();
    let [info] = list.as_slice() else {
        panic!("{list:?}");
    };
    let to = IbAddr::new(gid(THERE)).with_service_id(SERVICE);
    assert_eq!(info.destination, Some(to.into()));
    assert!(matches!(info.source, Some(CmAddr::Ib(from)) if from.gid == gid(HERE)));
    let device_port = info.device_port().unwrap();
    assert_eq!(
        (
            device_port.rdma_device().unwrap().name.as_str(),
            device_port.port
        ),
        ("mlx5_0", 1)
    );
    assert_eq!(device_port.destination_gid, Some(gid(THERE)));
    assert_eq!(
        (info.flags, info.port_space),
        (AddrInfoFlags::SA, PortSpace::IB)
    );
    assert_eq!(resolution.take_result(), Err(Error::NothingResolved));
}

#[test]
fn each_host_of_a_service_is_reached_by_its_own_gid() {
    let (fabric, here) = fabric();
    let other = "fe80::3";
    let mut record = ServiceRecord::new(SERVICE + 1, gid(other));
    record.name = "storage".try_into().unwrap();
    fabric.register_service(record);
    let channel = channel(&here).unwrap();
    let id = bound(&channel);
    let begun = id.resolve_addrinfo(&AddrInfoResolver::new(), None, "storage", &service());
    expect(&channel, &id, EventKind::AddrInfoResolved);
    let list = begun.unwrap().take_result().unwrap();
    let gids: Vec<_> = list
        .iter()
        .map(|info| {
            let device_port = info.device_port().unwrap();
            assert_eq!(
                device_port.rdma_device().unwrap().transport,
                Transport::InfiniBand
            );
            device_port.destination_gid.unwrap()
        })
        .collect();
    assert_eq!(gids, [gid(THERE), gid(other)]);
}

#[test]
fn an_unknown_service_leaves_the_id_usable() {
    let (_fabric, here) = fabric();
    let channel = channel(&here).unwrap();
    let id = bound(&channel);
    let resolver = AddrInfoResolver::new();
    let begin = |name| id.resolve_addrinfo(&resolver, None, name, &service());
    let mut unknown = begin("unknown").unwrap();
    let status = expect(&channel, &id, EventKind::AddrInfoError);
    assert_eq!(status, -libc::ENODATA);
    assert!(matches!(
        unknown.take_result(),
        Err(Error::Administrator(_))
    ));
    let mut storage = begin("storage").unwrap();
    expect(&channel, &id, EventKind::AddrInfoResolved);
    assert_eq!(storage.take_result().unwrap().len(), 1);
}

#[test]
fn each_failure_of_a_service_has_its_error_number() {
    let (fabric, here) = fabric();
    let channel = channel(&here).unwrap();
    let id = bound(&channel);
    let resolver = AddrInfoResolver::new();
    for (administrator, name, errno) in [
        (SubnetAdmin::Answers, "unknown", libc::ENODATA),
        (SubnetAdmin::Refuses, "storage", libc::EINVAL),
        (SubnetAdmin::Silent, "storage", libc::ETIMEDOUT),
    ] {
        fabric.set_subnet_admin(administrator);
        let begun = id.resolve_addrinfo(&resolver, None, name, &service());
        let mut resolution = begun.unwrap();
        let status = expect(&channel, &id, EventKind::AddrInfoError);
        assert_eq!(status, -errno);
        let Err(Error::Administrator(failure)) = resolution.take_result() else {
            panic!("{administrator:?}");
        };
        assert_eq!(failure.raw_os_error(), Some(errno));
        assert_eq!(resolution.take_result(), Err(Error::NothingResolved));
    }
}

/// A failure that was not read would be taken for the next resolution's.
#[test]
fn a_failure_is_read_before_the_next_resolution() {
    let (_fabric, here) = fabric();
    let channel = channel(&here).unwrap();
    let id = channel.create_id(PortSpace::IB).unwrap();
    let resolver = resolver(&here).acm(None).name_resolver(Nobody);
    let begin = || id.resolve_addrinfo(&resolver, "somebody", "7471", &Hints::rc());
    let mut resolution = begin().unwrap();
    wait_readable(&channel);
    assert_eq!(begin().map(drop), BUSY);
    let event = channel.try_next_event().unwrap().unwrap();
    assert_eq!(event.kind(), EventKind::AddrInfoError);
    let why = Err(Error::Name(NameError::NoName));
    assert_eq!(resolution.take_result(), why);
    let _next = begin().unwrap();
}

/// The result of the first one stays with it.
#[test]
fn a_service_is_resolved_after_a_name() {
    let (_fabric, here) = fabric();
    let channel = channel(&here).unwrap();
    let id = bound(&channel);
    let resolver = resolver(&here).acm(None);
    let hints = Hints::new().port_space(PortSpace::IB);
    let hints = hints.destination(IbAddr::new(gid(THERE)));
    let mut names = id.resolve_addrinfo(&resolver, None, None, &hints).unwrap();
    next(&channel);
    id.resolve_ib_service(IbService::with_id(1)).unwrap();
    let again = id.resolve_addrinfo(&resolver, None, None, &hints);
    assert_eq!(again.map(drop), BUSY);
    expect(&channel, &id, EventKind::AddrInfoError);
    assert_eq!(names.take_result().unwrap().len(), 1);
    id.resolve_addrinfo(&resolver, None, None, &hints)
        .map(drop)
        .unwrap();
}

#[test]
fn a_failure_stays_with_its_resolution() {
    let (_fabric, here) = fabric();
    let channel = channel(&here).unwrap();
    let id = bound(&channel);
    let resolver = AddrInfoResolver::new();
    let begin = |name| id.resolve_addrinfo(&resolver, None, name, &service());
    let mut unknown = begin("unknown").unwrap();
    expect(&channel, &id, EventKind::AddrInfoError);
    let mut storage = begin("storage").unwrap();
    expect(&channel, &id, EventKind::AddrInfoResolved);
    let failure = unknown.take_result();
    assert!(
        matches!(failure, Err(Error::Administrator(_))),
        "{failure:?}"
    );
    assert_eq!(storage.take_result().unwrap().len(), 1);
}

/// The kernel keeps them, and refuses to resolve another service.
#[test]
fn records_stay_with_their_resolution() {
    let (_fabric, here) = fabric();
    let channel = channel(&here).unwrap();
    let id = bound(&channel);
    let resolver = resolver(&here).acm(None).name_resolver(Nobody);
    let begin = || id.resolve_addrinfo(&resolver, None, "storage", &service());
    let mut storage = begin().unwrap();
    expect(&channel, &id, EventKind::AddrInfoResolved);
    let refused = begin().map(drop);
    let is_refused = matches!(refused, Err(Error::Rdma(CoreError::Command(_))));
    assert!(is_refused, "{refused:?}");
    let names = id.resolve_addrinfo(&resolver, "somebody", "7471", &Hints::rc());
    assert_eq!(next(&channel).kind(), EventKind::AddrInfoError);
    let why = Err(Error::Name(NameError::NoName));
    assert_eq!(names.unwrap().take_result(), why);
    assert_eq!(storage.take_result().unwrap().len(), 1);
}

/// Their threads wait until the kernel's queries end.
#[test]
fn queries_that_are_given_up_are_not_counted_as_resolutions() {
    let (fabric, here) = fabric();
    fabric.set_subnet_admin(SubnetAdmin::Silent);
    let channel = channel(&here).unwrap();
    let id = channel.create_id(PortSpace::IB).unwrap();
    let resolver = resolver(&here).acm(None).name_resolver(Nobody);
    let brief = service().deadline(Duration::from_millis(1));
    for _ in 0..64 {
        let given_up = resolver.resolve(None, "storage", &brief);
        assert!(matches!(given_up, Err(Error::NoService(_))), "{given_up:?}");
    }
    let mut names = id
        .resolve_addrinfo(&resolver, "somebody", "7471", &Hints::rc())
        .unwrap();
    assert_eq!(next(&channel).kind(), EventKind::AddrInfoError);
    let why = Err(Error::Name(NameError::NoName));
    assert_eq!(names.take_result(), why);
}

/// Knows no names.
#[derive(Debug)]
struct Nobody;

impl NameResolver for Nobody {
    fn host(&self, _: &HostQuery<'_>) -> Result<Host, NameError> {
        Err(NameError::NoName)
    }
}

#[test]
fn what_is_refused_at_once_leaves_the_id_usable() {
    let (_fabric, here) = fabric();
    let channel = channel(&here).unwrap();
    let unbound = channel.create_id(PortSpace::IB).unwrap();
    let resolver = AddrInfoResolver::new();
    for _ in 0..2 {
        let begun = unbound.resolve_addrinfo(&resolver, None, "storage", &service());
        assert!(
            matches!(begun, Err(Error::Rdma(CoreError::Command(_)))),
            "{begun:?}"
        );
    }
    let with_node = unbound.resolve_addrinfo(&resolver, "node", "storage", &service());
    assert_eq!(with_node.map(drop), Err(Error::SaWithNode));
    assert!(channel.try_next_event().unwrap().is_none());
}

#[test]
fn a_kernel_without_the_command_is_reported() {
    let fabric = Fabric::new();
    let adapter = Adapter::infiniband("mlx5_0").port(Port::new(gid(HERE)));
    let old = fabric
        .host([adapter])
        .kernel_version(KernelVersion::Linux6_1);
    let channel = channel(&old).unwrap();
    let id = bound(&channel);
    let begun = id.resolve_addrinfo(&AddrInfoResolver::new(), None, "storage", &service());
    let Err(Error::Rdma(CoreError::Unsupported { command, .. })) = begun else {
        panic!("{begun:?}");
    };
    assert_eq!(command, CommandNumber::RESOLVE_IB_SERVICE);
}

#[test]
fn resolving_a_name_by_event_needs_no_command_of_the_kernel() {
    let (_fabric, here) = fabric();
    let channel = channel(&here).unwrap();
    let id = channel.create_id(PortSpace::IB).unwrap();
    let resolver = resolver(&here).acm(None);
    let to = CmAddr::from(IbAddr::new(gid(THERE)));
    let hints = Hints::new().port_space(PortSpace::IB).destination(to);
    let mut resolution = id.resolve_addrinfo(&resolver, None, None, &hints).unwrap();
    let event = next(&channel);
    assert_eq!(event.kind(), EventKind::AddrInfoResolved);
    let list = resolution.take_result().unwrap();
    assert_eq!(list[0].destination, Some(to));
    assert!(list[0].is_reachable(), "{list:?}");
}

/// Fails in the worst way.
#[derive(Debug)]
struct Panicking;

impl NameResolver for Panicking {
    fn host(&self, _: &HostQuery<'_>) -> Result<Host, NameError> {
        panic!("as it should");
    }
}

#[test]
fn a_resolver_that_panics_leaves_an_event_and_an_error() {
    let (_fabric, here) = fabric();
    let channel = channel(&here).unwrap();
    let resolver = resolver(&here).name_resolver(Panicking).acm(None);
    for hints in [Hints::rc(), Hints::rc().deadline(Duration::from_secs(60))] {
        let id = channel.create_id(PortSpace::TCP).unwrap();
        let resolution = id.resolve_addrinfo(&resolver, "storage-7", "7471", &hints);
        let event = next(&channel);
        assert_eq!(event.kind(), EventKind::AddrInfoError);
        assert_eq!(event.status(), -libc::EIO);
        assert_eq!(
            resolution.unwrap().take_result(),
            Err(Error::LookupPanicked)
        );
    }
}

/// Knows one name.
#[derive(Debug)]
struct OneHost;

impl NameResolver for OneHost {
    fn host(&self, query: &HostQuery<'_>) -> Result<Host, NameError> {
        if query.name == "storage-7" {
            Ok(Host::from_iter([([10, 1, 0, 7], 0).into()]))
        } else {
            Err(NameError::NoName)
        }
    }
}

#[test]
fn a_name_is_looked_up_with_the_flag_for_names() {
    let (_fabric, here) = fabric();
    let channel = channel(&here).unwrap();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    let resolver = resolver(&here).name_resolver(OneHost).acm(None);
    let by_name = Hints::rc().flags(AddrInfoFlags::DNS);
    let known = id.resolve_addrinfo(&resolver, "storage-7", "7471", &by_name);
    let event = next(&channel);
    assert_eq!(event.kind(), EventKind::AddrInfoResolved);
    let list = known.unwrap().take_result().unwrap();
    assert_eq!(list.len(), 1);
    assert_eq!(list[0].destination, Some(([10, 1, 0, 7], 7471).into()));
    assert!(list[0].flags.contains(AddrInfoFlags::DNS));
    assert!(channel.try_next_event().unwrap().is_none());

    let unknown = id.resolve_addrinfo(&resolver, "storage-8", "7471", &by_name);
    let event = next(&channel);
    assert_eq!(event.kind(), EventKind::AddrInfoError);
    assert_eq!(event.status(), -libc::ENOENT);
    assert_eq!(
        unknown.unwrap().take_result(),
        Err(NameError::NoName.into())
    );

    let both = by_name.subnet_administrator();
    let refused = id.resolve_addrinfo(&resolver, None, "storage", &both);
    assert_eq!(refused.map(drop), Err(Error::SaAndDns));
}
