//! The two sets of address commands.

use std::sync::Arc;
use std::time::Duration;

use rdmacm_abi::{Bind, BindIp, ResolveAddr, ResolveIp};
use rdmacm_core::{AddressAbi, CmAddr, CommandNumber, IbAddr, PortSpace};

use crate::script::{FIRST_ID, Scripted};
use crate::{Fixture, errno, invalid, options};

const SECOND: Duration = Duration::from_secs(1);

fn v4(host: u8, port: u16) -> CmAddr {
    CmAddr::from(([10, 0, 0, host], port))
}

/// A channel that detects the address ABI.
fn open() -> Fixture {
    let ucma = Arc::new(Scripted::new());
    let channel = options(&ucma).open().unwrap();
    Fixture { ucma, channel }
}

#[test]
fn an_address_of_any_family_is_bound_and_resolved_with_its_size() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    id.bind(v4(1, 7)).unwrap();
    let request: Bind = fixture.ucma.only(CommandNumber::BIND);
    assert_eq!((request.id, request.addr_size), (FIRST_ID, 16));
    let bound = request.addr.as_in().unwrap();
    assert_eq!((bound.port.get(), bound.addr.get()), (7, 0x0a00_0001));
    id.resolve_addr(Some(v4(1, 0)), v4(2, 8), SECOND).unwrap();
    let request: ResolveAddr = fixture.ucma.only(CommandNumber::RESOLVE_ADDR);
    assert_eq!((request.id, request.timeout_ms), (FIRST_ID, 1000));
    assert_eq!(request.source.as_in().unwrap().addr.get(), 0x0a00_0001);
    assert_eq!(request.destination.as_in().unwrap().port.get(), 8);
}

#[test]
fn ip_addresses_are_bound_and_resolved_by_the_shorter_commands() {
    let fixture = open();
    let id = fixture.id(PortSpace::TCP);
    id.bind(v4(1, 7)).unwrap();
    id.resolve_addr(Some(v4(1, 0)), v4(2, 8), SECOND).unwrap();
    let commands = [CommandNumber::BIND_IP, CommandNumber::RESOLVE_IP];
    assert_eq!(fixture.sent(), commands);
    let native: IbAddr = "[fe80::1]".parse().unwrap();
    id.bind(native).unwrap();
    id.resolve_addr(None, native, SECOND).unwrap();
    let commands = [CommandNumber::BIND, CommandNumber::RESOLVE_ADDR];
    assert_eq!(fixture.sent(), commands);
    assert_eq!(fixture.channel.address_abi(), AddressAbi::AnyFamily);
}

/// What the kernel refuses is refused: both sets have it.
#[test]
fn a_refused_command_for_ip_is_neither_repeated_nor_probed() {
    let fixture = open();
    let id = fixture.id(PortSpace::TCP);
    fixture.ucma.refuse(CommandNumber::BIND_IP, libc::EINVAL);
    errno(id.bind(v4(1, 7)), libc::EINVAL);
    assert_eq!(fixture.sent(), [CommandNumber::BIND_IP]);
}

#[test]
fn the_ip_commands_refuse_infiniband_addresses() {
    let fixture = Fixture::with(AddressAbi::IpOnly);
    assert_eq!(fixture.channel.address_abi(), AddressAbi::IpOnly);
    let id = fixture.id(PortSpace::TCP);
    id.bind(v4(1, 7)).unwrap();
    let request: BindIp = fixture.ucma.only(CommandNumber::BIND_IP);
    assert_eq!(request.addr.as_in().unwrap().port.get(), 7);
    id.resolve_addr(None, v4(2, 8), SECOND).unwrap();
    let request: ResolveIp = fixture.ucma.only(CommandNumber::RESOLVE_IP);
    assert_eq!((request.id, request.timeout_ms), (FIRST_ID, 1000));
    assert_eq!(request.destination.as_in().unwrap().port.get(), 8);
    let native: IbAddr = "[fe80::1]".parse().unwrap();
    invalid(id.bind(native), "no InfiniBand addresses");
    let resolved = id.resolve_addr(None, native, SECOND);
    invalid(resolved, "no InfiniBand addresses");
    assert!(fixture.sent().is_empty());
}

#[test]
fn both_addresses_are_of_one_family() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    let six = CmAddr::from((std::net::Ipv6Addr::LOCALHOST, 7));
    invalid(id.resolve_addr(Some(six), v4(2, 8), SECOND), "family");
}

#[test]
fn an_old_kernel_is_detected_once_and_gets_the_ip_commands() {
    let fixture = open();
    assert_eq!(fixture.channel.address_abi(), AddressAbi::AnyFamily);
    let id = fixture.id(PortSpace::TCP);
    for command in [CommandNumber::QUERY, CommandNumber::BIND] {
        fixture.ucma.refuse(command, libc::EINVAL);
    }
    id.path_records().unwrap();
    let detected = [
        CommandNumber::QUERY,
        CommandNumber::BIND,
        CommandNumber::QUERY_ROUTE,
    ];
    assert_eq!(fixture.sent(), detected);
    assert_eq!(fixture.channel.address_abi(), AddressAbi::IpOnly);
    id.addresses().unwrap();
    assert_eq!(fixture.sent(), [CommandNumber::QUERY_ROUTE]);
}

#[test]
fn a_refusal_by_a_kernel_that_supports_the_command_is_final() {
    let fixture = open();
    let id = fixture.id(PortSpace::TCP);
    let native: IbAddr = "[fe80::1]".parse().unwrap();
    let bind = CommandNumber::BIND;
    fixture.ucma.refuse(bind, libc::EINVAL);
    fixture.ucma.refuse(bind, libc::ENOENT);
    errno(id.bind(native), libc::EINVAL);
    let sent = fixture.ucma.take();
    let about: Bind = sent[1].request();
    assert_eq!((sent.len(), about.id), (2, u32::MAX));
    fixture.ucma.refuse(bind, libc::EINVAL);
    errno(id.bind(native), libc::EINVAL);
    assert_eq!(fixture.sent(), [bind], "the library probes once");
    assert_eq!(fixture.channel.address_abi(), AddressAbi::AnyFamily);
}

#[test]
fn an_address_abi_that_the_caller_chose_is_never_probed() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    fixture.ucma.refuse(CommandNumber::BIND, libc::EINVAL);
    errno(id.bind(v4(1, 7)), libc::EINVAL);
    fixture.ucma.refuse(CommandNumber::BIND, libc::EADDRINUSE);
    errno(id.bind(v4(1, 7)), libc::EADDRINUSE);
    assert_eq!(fixture.sent(), [CommandNumber::BIND; 2]);
}
