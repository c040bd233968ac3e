//! librdmacm in the same guest as the reference: the same calls, compared with the
//! output of `tests/c/peer.c` line by line.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::process::Command;
use std::time::Duration;

use rdmacm_addrinfo::{AddrInfo, Hints};
use rdmacm_core::{CmAddr, CmId, DeviceId, Error, Event, EventChannel, Gid, PortSpace};
use rdmacm_tests::{PATIENCE, PLAIN, Site, Soft, UNROUTABLE, free_port};

use crate::command::built;
use rdmacm_tests_macros::case;

fn c_library(arguments: &[&str]) -> String {
    let output = Command::new(built("rdmacm-c-peer"))
        .args(arguments)
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn errno(step: &str, error: &Error) -> String {
    format!("{step}=errno {}\n", error.raw_os_error().unwrap())
}

fn address(address: CmAddr) -> String {
    format!("{} {}", address.ip().unwrap(), address.port())
}

fn hexadecimal(gid: Gid) -> String {
    format!("{:032x}", u128::from_be_bytes(gid.0))
}

/// In the format of `show_id`.
fn id_lines(id: &CmId) -> String {
    let addresses = id.addresses().unwrap();
    let device = addresses.device.and_then(DeviceId::look_up);
    let device = device.map_or("none".to_owned(), |device| device.name);
    let paths = id.path_records().unwrap();
    let pkey = match addresses.pkey {
        0 => "0".to_owned(),
        pkey => format!("{pkey:#x}"),
    };
    let mut text = format!(
        "device={device}\nport_number={}\npkey={pkey}\npaths={}\n",
        addresses.port_number,
        paths.len()
    );
    for path in paths.iter().map(|path| path.record) {
        let (sgid, dgid) = (hexadecimal(path.sgid), hexadecimal(path.dgid));
        writeln!(text, "path.sgid={sgid}\npath.dgid={dgid}").unwrap();
        writeln!(
            text,
            "path=mtu {} rate {} life {} pkey {:#x} sl {} hop {} class {} both {}",
            path.mtu.number(),
            path.rate,
            path.packet_life_time,
            path.pkey,
            path.sl,
            path.hop_limit,
            path.traffic_class,
            u8::from(path.reversible)
        )
        .unwrap();
    }
    text
}

/// In the format of `bind_address`.
fn bind(address_to_bind: CmAddr) -> String {
    let channel = EventChannel::open().unwrap();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    if let Err(error) = id.bind(address_to_bind) {
        return errno("bind", &error);
    }
    let source = address(id.local_addr().unwrap().unwrap());
    let again = id.bind(address_to_bind).unwrap_err();
    format!(
        "source={source}\n{}{}",
        id_lines(&id),
        errno("bind again", &again)
    )
}

fn event_line(event: &Event) -> String {
    format!("event=RDMA_CM_EVENT_{} {}\n", event.kind(), event.status())
}

/// In the format of `resolve`.
fn resolve(destination: CmAddr) -> String {
    let timeout = Duration::from_millis(500);
    let channel = EventChannel::open().unwrap();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    if let Err(error) = id.resolve_addr(None, destination, timeout) {
        return errno("resolve_addr", &error);
    }
    let event = channel.next_event(PATIENCE).unwrap();
    let mut text = event_line(&event);
    if event.failure().is_some() {
        return text;
    }
    writeln!(text, "sgid={}", hexadecimal(id.gids().unwrap().source)).unwrap();
    if let Err(error) = id.resolve_route(timeout) {
        return text + &errno("resolve_route", &error);
    }
    let event = channel.next_event(PATIENCE).unwrap();
    text += &event_line(&event);
    let source = id.local_addr().unwrap().unwrap().ip().unwrap();
    let destination = address(id.peer_addr().unwrap().unwrap());
    writeln!(text, "source={source}\ndestination={destination}").unwrap();
    text + &id_lines(&id)
}

fn c_bind(address: CmAddr) -> String {
    let ip = address.ip().unwrap().to_string();
    c_library(&["bind", &ip, &address.port().to_string()])
}

fn c_resolve(address: CmAddr) -> String {
    let ip = address.ip().unwrap().to_string();
    c_library(&["resolve", &ip, &address.port().to_string()])
}

fn gid_of(address: CmAddr) -> String {
    let channel = EventChannel::open().unwrap();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    id.bind(address.with_port(0)).unwrap();
    hexadecimal(id.gids().unwrap().source)
}

#[case(needs(CPeer))]
fn bound_ids_agree(site: &Site) {
    for ip in site.ips() {
        let address = CmAddr::from((ip, free_port()));
        assert_eq!(bind(address), c_bind(address));
    }
    for wildcard in ["0.0.0.0", "::", "127.0.0.1", "::1"] {
        let address = CmAddr::from((wildcard.parse::<IpAddr>().unwrap(), free_port()));
        assert_eq!(bind(address), c_bind(address));
    }
}

#[case(needs(CPeer))]
fn refused_binds_agree(site: &Site) {
    let link_local = site.link_local(0);
    for address in [
        CmAddr::from((PLAIN, 0)),
        CmAddr::from(([198, 51, 100, 7], 0)),
        link_local,
    ] {
        let ours = bind(address);
        assert!(ours.starts_with("bind=errno"), "{ours}");
        assert_eq!(ours, c_bind(address));
    }
}

#[case(needs(CPeer))]
fn resolved_ids_agree(site: &Site) {
    for destination in [site.v4(7471), site.v6(7471)] {
        let theirs = match site.soft {
            Soft::Rxe => c_resolve(destination),
            // librdmacm does not query GIDs on iWARP.
            Soft::Siw => c_resolve(destination).replace(&"0".repeat(32), &gid_of(destination)),
        };
        assert_eq!(resolve(destination), theirs);
    }
}

#[case(needs(CPeer))]
fn unresolved_ids_agree(site: &Site) {
    for ip in [PLAIN, UNROUTABLE, site.silent] {
        let destination = CmAddr::from((ip, 7471));
        let ours = resolve(destination);
        assert_eq!(ours.lines().count(), 1, "{ours}");
        assert_eq!(ours, c_resolve(destination));
    }
}

/// librdmacm returns the first address without a query to the kernel.
#[case(needs(CPeer))]
fn names_agree(site: &Site) {
    let (v4, v6) = match site.soft {
        Soft::Rxe => ("rxe", "rxe6"),
        Soft::Siw => ("siw", "siw6"),
    };
    for name in [v4, v6] {
        let hints = Hints::rc().deadline(PATIENCE);
        for (hints, direction) in [(hints.clone(), "active"), (hints.passive(), "passive")] {
            let ours = rdmacm_addrinfo::resolve(name, "7471", &hints).unwrap();
            let c = c_library(&["name", name, "7471", direction]);
            assert_eq!(name_lines(&ours[0]), c);
        }
    }
}

/// In the format of `name`, except the source, which only this library finds.
fn name_lines(info: &AddrInfo) -> String {
    let family = match info.family {
        rdmacm_core::Family::V4 => libc::AF_INET,
        _ => libc::AF_INET6,
    };
    let (qp, ps) = (info.qp_type.number(), info.port_space.number());
    let (key, shown) = match (info.destination, info.source) {
        (Some(destination), _) => ("destination", destination),
        (None, source) => ("source", source.unwrap()),
    };
    format!(
        "kind=family {family} qp {qp} ps {ps:#x}\n{key}={}\n",
        address(shown)
    )
}
