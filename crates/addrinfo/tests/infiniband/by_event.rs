//! Resolving for an id, on a simulated fabric.

use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdmacm_addrinfo::{
    AddrInfoFlags, Directory, Error, Hints, Host, HostQuestion, NameError, ResolveAddrInfo,
    Resolver,
};
use rdmacm_core::{
    CmAddr, CmId, CommandNumber, Error as CoreError, Event, EventChannel, EventKind, IbAddr,
    IbService, PortSpace, ServiceRecord, Transport,
};
use rdmacm_sim::{Adapter, Fabric, KernelVersion, Port, SubnetAdmin};

use crate::fabric::{HERE, SERVICE, THERE, channel, directory, fabric, gid};

fn bound(channel: &EventChannel) -> CmId {
    let id = channel.create_id(PortSpace::IB).unwrap();
    id.bind(IbAddr::new(gid(HERE))).unwrap();
    id
}

fn service() -> Hints {
    Hints::new().subnet_administrator()
}

#[track_caller]
fn hear(channel: &EventChannel, id: &CmId, kind: EventKind) -> i32 {
    let event = channel.next_event(Duration::from_secs(60)).unwrap();
    assert!(*event.id() == *id, "{event:?}");
    assert_eq!(event.kind(), kind, "{event:?}");
    event.status()
}

/// Another thread has told of an end. This one's clock must not run away meanwhile, as
/// it does where the simulated kernel is waited for.
fn is_told(channel: &EventChannel) {
    let mut fds = [PollFd::new(channel.as_fd(), PollFlags::POLLIN)];
    assert_eq!(poll(&mut fds, PollTimeout::NONE), Ok(1));
}

fn told(channel: &EventChannel) -> Event {
    is_told(channel);
    channel.try_next_event().unwrap().unwrap()
}

const BUSY: Result<(), Error> = Err(Error::Rdma(CoreError::Busy));

#[test]
fn the_kernel_finds_a_service_for_the_id() {
    let (_fabric, here) = fabric();
    let channel = channel(&here).unwrap();
    let id = bound(&channel);
    let directory = Directory::new();
    let begin = || id.resolve_addrinfo(&directory, None, "storage", &service());
    begin().unwrap();
    assert_eq!(begin(), BUSY);
    assert_eq!(id.query_addrinfo(), Err(Error::NothingResolved));
    hear(&channel, &id, EventKind::AddrInfoResolved);
    assert_eq!(begin(), BUSY);
    let list = id.query_addrinfo().unwrap();
    let [info] = list.as_slice() else {
        panic!("{list:?}");
    };
    let to = IbAddr::new(gid(THERE)).with_service_id(SERVICE);
    assert_eq!(info.destination, Some(to.into()));
    assert!(matches!(info.source, Some(CmAddr::Ib(from)) if from.gid == gid(HERE)));
    let via = info.via().unwrap();
    assert_eq!((via.device_name.as_deref(), via.port), (Some("mlx5_0"), 1));
    assert_eq!(via.destination_gid, Some(gid(THERE)));
    assert_eq!(
        (info.flags, info.port_space),
        (AddrInfoFlags::SA, PortSpace::IB)
    );
    assert_eq!(id.query_addrinfo(), Err(Error::NothingResolved));
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
    id.resolve_addrinfo(&Directory::new(), None, "storage", &service())
        .unwrap();
    hear(&channel, &id, EventKind::AddrInfoResolved);
    let list = id.query_addrinfo().unwrap();
    let gids: Vec<_> = list
        .iter()
        .map(|info| {
            let via = info.via().unwrap();
            assert_eq!(via.transport, Transport::InfiniBand);
            via.destination_gid.unwrap()
        })
        .collect();
    assert_eq!(gids, [gid(THERE), gid(other)]);
}

#[test]
fn a_service_nobody_offers_leaves_the_id_free() {
    let (_fabric, here) = fabric();
    let channel = channel(&here).unwrap();
    let id = bound(&channel);
    let directory = Directory::new();
    let begin = |name| id.resolve_addrinfo(&directory, None, name, &service());
    begin("nobodys").unwrap();
    let status = hear(&channel, &id, EventKind::AddrInfoError);
    assert_eq!(status, -libc::ENODATA);
    begin("storage").unwrap();
    hear(&channel, &id, EventKind::AddrInfoResolved);
    assert_eq!(id.query_addrinfo().unwrap().len(), 1);
}

#[test]
fn every_failure_of_a_service_is_told_as_it_was() {
    let (fabric, here) = fabric();
    let channel = channel(&here).unwrap();
    let id = bound(&channel);
    let directory = Directory::new();
    for (administrator, name, errno) in [
        (SubnetAdmin::Answers, "nobodys", libc::ENODATA),
        (SubnetAdmin::Refuses, "storage", libc::EINVAL),
        (SubnetAdmin::Silent, "storage", libc::ETIMEDOUT),
    ] {
        fabric.set_subnet_admin(administrator);
        let begun = id.resolve_addrinfo(&directory, None, name, &service());
        begun.unwrap();
        let status = hear(&channel, &id, EventKind::AddrInfoError);
        assert_eq!(status, -errno);
        let Err(Error::Administrator(failure)) = id.query_addrinfo() else {
            panic!("{administrator:?}");
        };
        assert_eq!(failure.raw_os_error(), Some(errno));
        assert_eq!(id.query_addrinfo(), Err(Error::NothingResolved));
    }
}

/// A failure that nobody has read would be taken for the next resolution's.
#[test]
fn a_failure_is_read_before_the_next_resolution() {
    let (_fabric, here) = fabric();
    let channel = channel(&here).unwrap();
    let id = channel.create_id(PortSpace::IB).unwrap();
    let directory = directory(&here).acm(None).resolver(Nobody);
    let begin = || id.resolve_addrinfo(&directory, "somebody", "7471", &Hints::rc());
    begin().unwrap();
    is_told(&channel);
    assert_eq!(begin(), BUSY);
    assert_eq!(id.query_addrinfo(), Err(Error::NothingResolved));
    let event = channel.try_next_event().unwrap().unwrap();
    assert_eq!(event.kind(), EventKind::AddrInfoError);
    let why = Err(Error::Name(NameError::NoName));
    assert_eq!(id.query_addrinfo(), why);
    begin().unwrap();
}

/// Nobody asked why the first failed; the second is not the first's to tell of.
#[test]
fn a_search_without_a_resolution_leaves_no_result() {
    let (_fabric, here) = fabric();
    let channel = channel(&here).unwrap();
    let id = bound(&channel);
    let directory = directory(&here).acm(None).resolver(Nobody);
    let begin = || id.resolve_addrinfo(&directory, "somebody", "7471", &Hints::rc());
    begin().unwrap();
    told(&channel);
    id.resolve_ib_service(IbService::with_id(SERVICE)).unwrap();
    assert_eq!(begin(), BUSY);
    hear(&channel, &id, EventKind::AddrInfoResolved);
    assert_eq!(id.ib_service_records().unwrap().len(), 1);
    begin().unwrap();
}

/// A search that fails takes no result away that nobody has taken.
#[test]
fn a_search_without_a_resolution_loses_no_result() {
    let (_fabric, here) = fabric();
    let channel = channel(&here).unwrap();
    let id = bound(&channel);
    let directory = directory(&here).acm(None);
    let hints = Hints::new().port_space(PortSpace::IB);
    let hints = hints.destination(IbAddr::new(gid(THERE)));
    id.resolve_addrinfo(&directory, None, None, &hints).unwrap();
    told(&channel);
    id.resolve_ib_service(IbService::with_id(1)).unwrap();
    hear(&channel, &id, EventKind::AddrInfoError);
    let again = id.resolve_addrinfo(&directory, None, None, &hints);
    assert_eq!(again, BUSY);
    assert_eq!(id.query_addrinfo().unwrap().len(), 1);
}

/// Knows no names.
#[derive(Debug)]
struct Nobody;

impl Resolver for Nobody {
    fn host(&self, _: &HostQuestion<'_>) -> Result<Host, NameError> {
        Err(NameError::NoName)
    }
}

#[test]
fn what_is_refused_at_once_leaves_the_id_free() {
    let (_fabric, here) = fabric();
    let channel = channel(&here).unwrap();
    let unbound = channel.create_id(PortSpace::IB).unwrap();
    let directory = Directory::new();
    for _ in 0..2 {
        let begun = unbound.resolve_addrinfo(&directory, None, "storage", &service());
        assert!(
            matches!(begun, Err(Error::Rdma(CoreError::Command(_)))),
            "{begun:?}"
        );
    }
    let with_node = unbound.resolve_addrinfo(&directory, "node", "storage", &service());
    assert_eq!(with_node, Err(Error::SaWithNode));
    assert!(channel.try_next_event().unwrap().is_none());
}

#[test]
fn a_kernel_that_does_not_know_the_command_says_so() {
    let fabric = Fabric::new();
    let adapter = Adapter::infiniband("mlx5_0").port(Port::new(gid(HERE)));
    let old = fabric
        .host([adapter])
        .kernel_version(KernelVersion::Linux6_1);
    let channel = channel(&old).unwrap();
    let id = bound(&channel);
    let begun = id.resolve_addrinfo(&Directory::new(), None, "storage", &service());
    let Err(Error::Rdma(CoreError::Unsupported { command, .. })) = begun else {
        panic!("{begun:?}");
    };
    assert_eq!(command, CommandNumber::RESOLVE_IB_SERVICE);
}

/// Names need nothing of the kernel's to be told by an event.
#[test]
fn an_address_is_told_by_an_event_whatever_the_kernel_knows() {
    let (_fabric, here) = fabric();
    let channel = channel(&here).unwrap();
    let id = channel.create_id(PortSpace::IB).unwrap();
    let directory = directory(&here).acm(None);
    let to = CmAddr::from(IbAddr::new(gid(THERE)));
    let hints = Hints::new().port_space(PortSpace::IB).destination(to);
    id.resolve_addrinfo(&directory, None, None, &hints).unwrap();
    let event = told(&channel);
    assert_eq!(event.kind(), EventKind::AddrInfoResolved);
    let list = id.query_addrinfo().unwrap();
    assert_eq!(list[0].destination, Some(to));
    assert!(list[0].is_reachable(), "{list:?}");
}

/// Knows one name.
#[derive(Debug)]
struct OneHost;

impl Resolver for OneHost {
    fn host(&self, question: &HostQuestion<'_>) -> Result<Host, NameError> {
        if question.name == "storage-7" {
            Ok(Host::from_iter([([10, 1, 0, 7], 0).into()]))
        } else {
            Err(NameError::NoName)
        }
    }
}

/// Which is also what is done without the flag; services are looked for by `SA`.
#[test]
fn a_name_is_looked_up_for_the_id_where_the_flag_says_so() {
    let (_fabric, here) = fabric();
    let channel = channel(&here).unwrap();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    let directory = directory(&here).resolver(OneHost).acm(None);
    let by_name = Hints::rc().flags(AddrInfoFlags::DNS);
    id.resolve_addrinfo(&directory, "storage-7", "7471", &by_name)
        .unwrap();
    let event = told(&channel);
    assert_eq!(event.kind(), EventKind::AddrInfoResolved);
    let list = id.query_addrinfo().unwrap();
    assert_eq!(list.len(), 1);
    assert_eq!(list[0].destination, Some(([10, 1, 0, 7], 7471).into()));
    assert!(list[0].flags.contains(AddrInfoFlags::DNS));
    assert!(channel.try_next_event().unwrap().is_none());

    id.resolve_addrinfo(&directory, "storage-8", "7471", &by_name)
        .unwrap();
    let event = told(&channel);
    assert_eq!(event.kind(), EventKind::AddrInfoError);
    assert_eq!(event.status(), -libc::ENOENT);
    assert_eq!(id.query_addrinfo(), Err(NameError::NoName.into()));

    let both = by_name.subnet_administrator();
    let refused = id.resolve_addrinfo(&directory, None, "storage", &both);
    assert_eq!(refused, Err(Error::SaAndDns));
}
