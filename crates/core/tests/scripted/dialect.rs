//! The two sets of address commands.

use std::time::Duration;

use rdmacm_abi::{Bind, BindIp, ResolveAddr, ResolveIp};
use rdmacm_core::{CmAddr, CommandNumber, Dialect, EventChannel, IbAddr, PortSpace};

use crate::script::{FIRST_ID, Scripted};
use crate::{Fixture, errno, invalid};

const SECOND: Duration = Duration::from_secs(1);

fn v4(host: u8, port: u16) -> CmAddr {
    CmAddr::from(([10, 0, 0, host], port))
}

/// The dialect is not chosen.
fn open() -> Fixture {
    let device = std::sync::Arc::new(Scripted::new());
    let options = EventChannel::options().device(device.clone());
    let channel = options.open().unwrap();
    Fixture { device, channel }
}

#[test]
fn an_address_of_any_family_is_bound_and_resolved_with_its_size() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    id.bind(v4(1, 7)).unwrap();
    let request: Bind = fixture.device.only(CommandNumber::BIND);
    assert_eq!((request.id, request.addr_size), (FIRST_ID, 16));
    let bound = request.addr.as_in().unwrap();
    assert_eq!((bound.port.get(), bound.addr.get()), (7, 0x0a00_0001));
    id.resolve_addr(Some(v4(1, 0)), v4(2, 8), SECOND).unwrap();
    let request: ResolveAddr = fixture.device.only(CommandNumber::RESOLVE_ADDR);
    assert_eq!((request.id, request.timeout_ms), (FIRST_ID, 1000));
    assert_eq!(request.source.as_in().unwrap().addr.get(), 0x0a00_0001);
    assert_eq!(request.destination.as_in().unwrap().port.get(), 8);
}

#[test]
fn the_ip_commands_know_no_infiniband_address() {
    let fixture = Fixture::with(Dialect::IpOnly);
    assert_eq!(fixture.channel.dialect(), Dialect::IpOnly);
    let id = fixture.id(PortSpace::TCP);
    id.bind(v4(1, 7)).unwrap();
    let request: BindIp = fixture.device.only(CommandNumber::BIND_IP);
    assert_eq!(request.addr.as_in().unwrap().port.get(), 7);
    id.resolve_addr(None, v4(2, 8), SECOND).unwrap();
    let request: ResolveIp = fixture.device.only(CommandNumber::RESOLVE_IP);
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
fn an_old_kernel_is_found_out_once_and_spoken_to_its_own_way() {
    let fixture = open();
    assert_eq!(fixture.channel.dialect(), Dialect::AnyFamily);
    let id = fixture.id(PortSpace::TCP);
    for _ in 0..2 {
        fixture.device.refuse(CommandNumber::BIND, libc::EINVAL);
    }
    id.bind(v4(1, 7)).unwrap();
    let bind = CommandNumber::BIND;
    assert_eq!(fixture.sent(), [bind, bind, CommandNumber::BIND_IP]);
    assert_eq!(fixture.channel.dialect(), Dialect::IpOnly);
    id.bind(v4(1, 7)).unwrap();
    assert_eq!(fixture.sent(), [CommandNumber::BIND_IP]);
}

#[test]
fn a_refusal_of_a_kernel_that_knows_the_command_is_its_last_word() {
    let fixture = open();
    let id = fixture.id(PortSpace::TCP);
    let bind = CommandNumber::BIND;
    fixture.device.refuse(bind, libc::EINVAL);
    fixture.device.refuse(bind, libc::ENOENT);
    errno(id.bind(v4(1, 7)), libc::EINVAL);
    let sent = fixture.device.take();
    let about: Bind = sent[1].request();
    assert_eq!((sent.len(), about.id), (2, u32::MAX));
    fixture.device.refuse(bind, libc::EINVAL);
    errno(id.bind(v4(1, 7)), libc::EINVAL);
    assert_eq!(fixture.sent(), [bind], "it is asked once");
    assert_eq!(fixture.channel.dialect(), Dialect::AnyFamily);
}

#[test]
fn a_dialect_that_was_chosen_is_never_doubted() {
    let fixture = Fixture::new();
    let id = fixture.id(PortSpace::TCP);
    fixture.device.refuse(CommandNumber::BIND, libc::EINVAL);
    errno(id.bind(v4(1, 7)), libc::EINVAL);
    fixture.device.refuse(CommandNumber::BIND, libc::EADDRINUSE);
    errno(id.bind(v4(1, 7)), libc::EADDRINUSE);
    assert_eq!(fixture.sent(), [CommandNumber::BIND; 2]);
}
