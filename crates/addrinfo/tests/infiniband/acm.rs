//! ibacm, beside a kernel that has InfiniBand.

use std::time::Duration;

use rdmacm_addrinfo::{Acm, AddrInfo, Hints, Host, HostQuery, NameError, NameResolver};
use rdmacm_core::{CmAddr, EventKind, Family, IbAddr, PathData, PathFlags, PortSpace};
use rdmacm_sim::SubnetAdmin;
use tempfile::TempDir;

use crate::daemon::{AcmDaemon, Action, acm_entry};
use crate::fabric::{HERE, SERVICE, THERE, channel, fabric, gid, resolver};

const SECOND: Duration = Duration::from_secs(1);

/// In the default partition, with the flags of a path that can be used.
fn path_entry() -> Vec<u8> {
    entry_of_a_path(PathData::USABLE, 0)
}

fn entry_of_a_path(flags: PathFlags, hop_limit: u8) -> Vec<u8> {
    let mut record = vec![0; 8];
    record.extend(gid(THERE).0);
    record.extend(gid(HERE).0);
    record.resize(50, 0);
    record[47] = hop_limit;
    record.extend([0xff, 0xff]);
    acm_entry(flags.bits(), 0x10, &record)
}

fn reply(paths: &[Vec<u8>]) -> Vec<u8> {
    let source = acm_entry(1, 2, &[10, 1, 0, 3]);
    let entries = [paths.concat(), source].concat();
    let length = u16::try_from(16 + entries.len()).unwrap();
    let mut reply = vec![1, 0x81, 0, 0, 0, 0];
    reply.extend(length.to_ne_bytes());
    reply.extend([0; 8]);
    reply.extend(entries);
    reply
}

/// A daemon that knows the path, and where it is found, which is to go last.
fn daemon() -> (TempDir, AcmDaemon) {
    daemon_that_knows(vec![path_entry()])
}

fn daemon_that_knows(paths: Vec<Vec<u8>>) -> (TempDir, AcmDaemon) {
    let rundir = tempfile::tempdir().unwrap();
    let daemon = AcmDaemon::unix(rundir.path(), move |_| vec![Action::Send(reply(&paths))]);
    (rundir, daemon)
}

fn resolve(rundir: &TempDir, hints: &Hints) -> Vec<AddrInfo> {
    let resolver = resolver(&fabric().1).acm(Acm::with_rundir(rundir.path()));
    resolver.resolve(None, None, hints).unwrap()
}

fn ib(address: Option<CmAddr>) -> IbAddr {
    match address {
        Some(CmAddr::Ib(address)) => address,
        other => panic!("{other:?}"),
    }
}

/// The kernel has InfiniBand and no IP over it.
#[test]
fn the_native_address_stands_in_front_and_is_reached() {
    let (rundir, daemon) = daemon();
    let peer = CmAddr::from(([10, 1, 0, 7], 7471));
    let list = resolve(&rundir, &Hints::rc().destination(peer));
    let [native, ip] = list.as_slice() else {
        panic!("{list:?}");
    };
    assert_eq!((native.family, ip.family), (Family::Ib, Family::V4));
    let there = IbAddr::new(gid(THERE)).with_ip_service(PortSpace::TCP, 7471);
    assert_eq!(native.destination, Some(there.into()));
    assert_eq!(ib(native.source).gid, gid(HERE));
    let route = native.route.as_ref().unwrap();
    assert_eq!(route.settable()[0].record.dgid, gid(THERE));
    assert_eq!(native.paths[0].record.sgid, gid(HERE));
    let header = &native.connect_data;
    assert_eq!((header.len(), header[1]), (36, 0x40));
    assert_eq!(
        (&header[16..20], &header[32..]),
        (&[10, 1, 0, 3][..], &[10, 1, 0, 7][..])
    );
    assert!(!ip.is_reachable());
    assert_eq!(daemon.requests(1).len(), 1);
}

/// A host with one address and a canonical name.
#[derive(Debug)]
struct Storage;

impl NameResolver for Storage {
    fn host(&self, _: &HostQuery<'_>) -> Result<Host, NameError> {
        Ok(Host {
            addresses: vec![([10, 1, 0, 7], 0).into()],
            canonical_name: Some("storage-7.example".to_owned()),
        })
    }
}

#[test]
fn the_native_address_has_the_canonical_name() {
    let (rundir, _daemon) = daemon();
    let resolver = resolver(&fabric().1).acm(Acm::with_rundir(rundir.path()));
    let resolver = resolver.name_resolver(Storage);
    let hints = Hints::rc().canonical_name();
    let list = resolver.resolve("storage-7", "7471", &hints).unwrap();
    let names: Vec<_> = list
        .iter()
        .map(|info| info.canonical_name.as_deref())
        .collect();
    assert_eq!(names, [Some("storage-7.example"), None]);
}

/// In what is asked, behind the header: the source that is none, the GID twice.
#[test]
fn a_native_peer_is_asked_for_and_keeps_its_service() {
    let (rundir, daemon) = daemon();
    let peer = IbAddr::new(gid(THERE)).with_service_id(SERVICE);
    let list = resolve(&rundir, &Hints::rc().destination(peer));
    for info in &list {
        assert_eq!(ib(info.destination).service_id, SERVICE, "{info:?}");
        assert!(info.is_reachable(), "{info:?}");
        assert!(info.connect_data.is_empty());
    }
    let [request] = daemon.requests(1).try_into().unwrap();
    let (kind, record) = (&request[20..22], &request[24..]);
    assert_eq!(kind, 0x10_u16.to_ne_bytes());
    assert_eq!(record[8..24], gid(THERE).0);
}

/// One of them is usable: nobody asks the subnet administrator, who is silent.
#[test]
fn of_several_paths_the_kernel_takes_the_usable_one() {
    let alternate = entry_of_a_path(PathFlags::ALTERNATE, 7);
    let usable = entry_of_a_path(PathData::USABLE, 9);
    let (rundir, _daemon) = daemon_that_knows(vec![alternate, usable]);
    let (fabric, here) = fabric();
    fabric.set_subnet_admin(SubnetAdmin::Silent);
    let peer = CmAddr::from(IbAddr::new(gid(THERE)).with_service_id(SERVICE));
    let resolver = resolver(&here).acm(Acm::with_rundir(rundir.path()));
    let hints = Hints::rc().destination(peer);
    let info = resolver.resolve(None, None, &hints).unwrap().remove(0);
    let hop_limits = |paths: &[PathData]| {
        let limits = paths.iter().map(|path| path.record.hop_limit);
        limits.collect::<Vec<_>>()
    };
    assert_eq!(hop_limits(&info.paths), [7, 9]);
    let route = info.route.as_ref().unwrap();
    assert_eq!(hop_limits(route.settable()), [9]);

    // As the caller sets it.
    let channel = channel(&here).unwrap();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    id.resolve_addr(None, info.destination.unwrap(), SECOND)
        .unwrap();
    let next = || channel.next_event(SECOND).unwrap().kind();
    assert_eq!(next(), EventKind::AddrResolved);
    id.set_ib_path(&info.paths).unwrap();
    assert_eq!(next(), EventKind::RouteResolved);
    assert_eq!(hop_limits(&id.path_records().unwrap()), [9]);
}

#[test]
fn several_paths_of_which_none_is_usable_are_asked_for() {
    let paths = [7, 9].map(|hop_limit| entry_of_a_path(PathFlags::ALTERNATE, hop_limit));
    let (rundir, _daemon) = daemon_that_knows(paths.to_vec());
    let info = resolve(&rundir, &Hints::rc().destination(IbAddr::new(gid(THERE)))).remove(0);
    assert_eq!(info.paths.len(), 2);
    let path = info.route.as_ref().unwrap().path_records[0];
    assert_eq!((path.flags, path.record.dlid), (PathData::USABLE, 2));
}

#[test]
fn a_path_alone_leads_to_its_end() {
    let (rundir, _daemon) = daemon();
    let peer = Hints::rc().destination(IbAddr::new(gid(THERE)));
    let path = resolve(&rundir, &peer)[0].paths[0];
    let list = resolve(&rundir, &Hints::rc().paths([path]));
    let info = &list[0];
    assert_eq!(ib(info.destination).gid, gid(THERE));
    assert_eq!(ib(info.source).gid, gid(HERE));
    assert!(info.is_reachable(), "{info:?}");
    let passive = Hints::rc().paths([path]).passive();
    let nothing = resolver(&fabric().1).resolve(None, None, &passive);
    assert_eq!(nothing, Err(rdmacm_addrinfo::Error::NothingToResolve));
}
