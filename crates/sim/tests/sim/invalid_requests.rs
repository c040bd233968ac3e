//! Requests that the kernel refuses.

use proptest::prelude::*;
use rdmacm_abi::{
    AddressFamily, Be16, Bind, Command, CreateId, CreateIdResponse, DestroyId, DestroyIdResponse,
    EventNumber, GetEvent, IdOption, OptionLevel, PortSpace, QpType, QueryPath, QueryPathResponse,
    ResolveAddr, ResolveIbService, ResolveRoute, SetOption, SockaddrIb, SockaddrStorage,
    WriteCmEvent,
};
use rdmacm_core::ucma::{Attachment, UcmaFile, transact};
use rdmacm_sim::{Adapter, Fabric, KernelVersion, Port};
use zerocopy::FromZeros;

use crate::{GID, TwoHosts, gid};

fn errno<C: Command>(device: &dyn UcmaFile, request: &C) -> Option<i32> {
    let mut response = C::Response::new_zeroed();
    let answer = transact(device, request, &mut response, Attachment::None);
    answer.map_or_else(|error| error.raw_os_error(), |()| None)
}

fn create(device: &dyn UcmaFile, uid: u64) -> u32 {
    let mut created = CreateIdResponse::new_zeroed();
    let request = CreateId::new(uid, PortSpace::TCP, QpType::RC);
    transact(device, &request, &mut created, Attachment::None).unwrap();
    created.id
}

fn address() -> SockaddrStorage {
    SockaddrIb {
        pkey: Be16::new(0xffff),
        addr: gid(GID).0,
        ..SockaddrIb::default()
    }
    .into()
}

#[test]
fn ids_of_other_files_are_refused() {
    let host = TwoHosts::new().here;
    let (one, other) = (host.open().unwrap(), host.open().unwrap());
    let id = create(one.as_ref(), 7);
    for command in [
        |device: &dyn UcmaFile, id| errno(device, &Bind::new(id, address())),
        |device: &dyn UcmaFile, id| errno(device, &ResolveAddr::new(id, None, address(), 1)),
        |device: &dyn UcmaFile, id| errno(device, &ResolveRoute::new(id, 1)),
        |device: &dyn UcmaFile, id| errno(device, &QueryPath::<1>::new(id)),
        |device: &dyn UcmaFile, id| errno(device, &DestroyId::new(id)),
        |device: &dyn UcmaFile, id| errno(device, &SetOption::id(id, IdOption::TOS)),
    ] {
        assert_eq!(command(one.as_ref(), id + 1), Some(libc::ENOENT));
        assert_eq!(command(other.as_ref(), id), Some(libc::EINVAL));
    }
    // A closed file takes its ids along.
    drop(one);
    assert_eq!(create(other.as_ref(), 7), id);
}

#[test]
fn a_command_beyond_the_table_is_invalid() {
    let fabric = Fabric::new();
    for (version, expected) in [
        (KernelVersion::Linux6_1, libc::EINVAL),
        // There is no such id.
        (KernelVersion::Linux7_3, libc::ENOENT),
    ] {
        let file = fabric
            .host([Adapter::infiniband("mlx5_0").port(Port::new(gid(GID)))])
            .kernel_version(version)
            .open()
            .unwrap();
        let request = ResolveIbService::new_zeroed();
        assert_eq!(errno(file.as_ref(), &request), Some(expected));
    }
}

#[test]
fn unknown_options_are_refused() {
    let file = TwoHosts::new().here.open().unwrap();
    let id = create(file.as_ref(), 7);
    let unnamed = SetOption::new(id, OptionLevel::ID, 7);
    assert_eq!(errno(file.as_ref(), &unnamed), Some(libc::ENOSYS));
    let unnamed = SetOption::new(id, OptionLevel::new(7), 0);
    assert_eq!(errno(file.as_ref(), &unnamed), Some(libc::ENOSYS));
    // Without a value.
    let option = SetOption::id(id, IdOption::TOS);
    assert_eq!(errno(file.as_ref(), &option), Some(libc::EINVAL));
}

#[test]
fn sizes_and_families_must_fit() {
    let device = TwoHosts::new().here.open().unwrap();
    let id = create(device.as_ref(), 7);
    let mut bind = Bind::new(id, address());
    for size in [0, 16, 47, 49, u16::MAX] {
        bind.addr_size = size;
        assert_eq!(errno(device.as_ref(), &bind), Some(libc::EINVAL));
    }
    let unknown = Bind::new(id, SockaddrStorage::ZERO);
    assert_eq!(unknown.addr.family(), AddressFamily::UNSPEC);
    assert_eq!(errno(device.as_ref(), &unknown), Some(libc::EINVAL));
    let port_space = CreateId::new(7, PortSpace::new(0x7147), QpType::RC);
    assert_eq!(errno(device.as_ref(), &port_space), Some(libc::EINVAL));
}

#[test]
fn an_id_without_a_uid_has_no_events() {
    let device = TwoHosts::new().here.open().unwrap();
    let id = create(device.as_ref(), 0);
    let write = WriteCmEvent::new(id, EventNumber::USER, 0, 7);
    assert_eq!(errno(device.as_ref(), &write), Some(libc::EINVAL));
    let resolve = ResolveAddr::new(id, None, address(), 1);
    assert_eq!(errno(device.as_ref(), &resolve), None);
    let get = GetEvent::new();
    assert_eq!(errno(device.as_ref(), &get), Some(libc::EAGAIN));
    let unknown = WriteCmEvent::new(id, EventNumber::ESTABLISHED, 0, 7);
    assert_eq!(errno(device.as_ref(), &unknown), Some(libc::EINVAL));
}

#[test]
fn events_that_were_read_are_counted() {
    let device = TwoHosts::new().here.open().unwrap();
    let id = create(device.as_ref(), 7);
    let write = WriteCmEvent::new(id, EventNumber::USER, 0, 7);
    for _ in 0..3 {
        assert_eq!(errno(device.as_ref(), &write), None);
    }
    for _ in 0..2 {
        assert_eq!(errno(device.as_ref(), &GetEvent::new()), None);
    }
    let mut answer = DestroyIdResponse::new_zeroed();
    let destroy = DestroyId::new(id);
    transact(device.as_ref(), &destroy, &mut answer, Attachment::None).unwrap();
    assert_eq!(answer.events_reported, 2);
    let get = GetEvent::new();
    assert_eq!(errno(device.as_ref(), &get), Some(libc::EAGAIN));
}

#[test]
fn a_path_answer_without_room_counts_paths() {
    let device = TwoHosts::new().here.open().unwrap();
    let id = create(device.as_ref(), 7);
    let mut answer = QueryPathResponse::<0>::new_zeroed();
    let ask = QueryPath::<0>::new(id);
    transact(device.as_ref(), &ask, &mut answer, Attachment::None).unwrap();
    assert_eq!(answer.path_count.get(), 0);
}

/// A number that is often an id's.
fn likely_id(seed: [u8; 32]) -> u32 {
    u32::from(seed[0] & 3)
}

/// One command of random bytes but for the id.
fn random<C: Command>(device: &dyn UcmaFile, seed: [u8; 32], id_at: usize) {
    let mut bytes: Vec<u8> = seed.into_iter().cycle().take(size_of::<C>()).collect();
    bytes[id_at..id_at + 4].copy_from_slice(&likely_id(seed).to_ne_bytes());
    let request = C::read_from_bytes(&bytes).unwrap();
    errno(device, &request);
}

fn one(device: &dyn UcmaFile, command: u8, seed: [u8; 32]) {
    let id = likely_id(seed);
    match command {
        0 => random::<CreateId>(device, seed, 20),
        1 => random::<DestroyId>(device, seed, 8),
        2 => random::<Bind>(device, seed, 0),
        3 => random::<ResolveAddr>(device, seed, 0),
        4 => random::<ResolveRoute>(device, seed, 0),
        5 => random::<ResolveIbService>(device, seed, 0),
        6 => random::<QueryPath<2>>(device, seed, 8),
        7 => random::<SetOption>(device, seed, 8),
        8 => drop(create(device, u64::from(seed[1]))),
        9 => drop(errno(device, &Bind::new(id, address()))),
        10 => drop(errno(device, &ResolveAddr::new(id, None, address(), 1))),
        11 => drop(errno(device, &ResolveRoute::new(id, 1))),
        _ => drop(errno(device, &GetEvent::new())),
    }
}

proptest! {
    #[test]
    fn arbitrary_commands_never_panic(
        commands in proptest::collection::vec((0..13_u8, any::<[u8; 32]>()), 1..60),
    ) {
        let device = TwoHosts::new().here.open().unwrap();
        for (command, seed) in commands {
            one(device.as_ref(), command, seed);
        }
    }
}
