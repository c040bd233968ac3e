//! Listening, and the listener that a request is for.

use rdmacm_core::{CmAddr, CmId, EventChannel, EventKind, Family, PortSpace};
use rdmacm_sim::{Adapter, Fabric};

use crate::pair::{Hosts, Listener, PORT, client_param};
use crate::{SECOND, errno, expect};

fn listen(hosts: &Hosts, address: CmAddr, af_only: Option<bool>) -> Listener {
    let channel = hosts.server.channel().unwrap();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    if let Some(af_only) = af_only {
        id.set_af_only(af_only).unwrap();
    }
    id.bind(address.with_port(PORT)).unwrap();
    id.listen(8).unwrap();
    Listener { channel, id }
}

/// Connects to one of the server's addresses.
fn connect(hosts: &Hosts, channel: &EventChannel, address: usize) -> Result<CmId, Option<i32>> {
    let to = (hosts.server.addresses()[address], PORT);
    let id = channel.create_id(PortSpace::TCP).unwrap();
    id.resolve_addr(None, to, SECOND).unwrap();
    expect(channel, EventKind::AddrResolved);
    id.resolve_route(SECOND).unwrap();
    expect(channel, EventKind::RouteResolved);
    let connected = id.connect(client_param().qp_number(hosts.free_number()));
    connected.map_err(|error| error.raw_os_error())?;
    Ok(id)
}

#[test]
fn any_backlog_listens_once() {
    for hosts in Hosts::each() {
        for backlog in [0, 1, 1024, 1025, u32::MAX] {
            let listener = hosts.listen(backlog);
            errno(listener.id.listen(1), libc::EINVAL);
            errno(
                listener.id.resolve_addr(None, hosts.address(), SECOND),
                libc::EINVAL,
            );
        }
    }
}

#[test]
fn an_unbound_id_listens_on_the_wildcard() {
    let hosts = Hosts::roce();
    let channel = hosts.server.channel().unwrap();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    id.listen(1).unwrap();
    let address = id.local_addr().unwrap().unwrap();
    assert_eq!(address.with_port(0), CmAddr::any(Family::V4));
    assert_ne!(address.port(), 0);
}

#[test]
fn a_wildcard_listens_on_every_device() {
    for hosts in Hosts::each() {
        let listener = listen(&hosts, CmAddr::any(Family::V4), None);
        let channel = hosts.client.channel().unwrap();
        let _client = connect(&hosts, &channel, 0).unwrap();
        let child = listener.next_request().into_child().unwrap();
        assert_eq!(child.local_addr().unwrap(), Some(hosts.address().into()));
        // It reports no device's removal.
        hosts.server.remove_device(hosts.choose("rxe0", "siw0"));
        assert!(listener.channel.try_next_event().unwrap().is_none());
        errno(child.disconnect(), libc::ENXIO);
    }
}

#[test]
fn the_ipv6_wildcard_takes_ipv4_on_roce_only() {
    let hosts = Hosts::roce();
    let listener = listen(&hosts, CmAddr::any(Family::V6), None);
    let channel = hosts.client.channel().unwrap();
    let _clients = [0, 1].map(|address| {
        let client = connect(&hosts, &channel, address).unwrap();
        (client, listener.next_request())
    });

    let hosts = Hosts::iwarp();
    let listener = listen(&hosts, CmAddr::any(Family::V6), None);
    let channel = hosts.client.channel().unwrap();
    let _v6 = connect(&hosts, &channel, 1).unwrap();
    let _request = listener.next_request();
    let _v4 = connect(&hosts, &channel, 0).unwrap();
    let event = channel.next_event(SECOND).unwrap();
    assert_eq!(event.kind(), EventKind::Rejected);
    assert_eq!(event.status(), -libc::ECONNRESET);
}

#[test]
fn a_listener_of_one_family_refuses_the_other() {
    for hosts in Hosts::each() {
        let _listener = listen(&hosts, CmAddr::any(Family::V6), Some(true));
        let channel = hosts.client.channel().unwrap();
        match connect(&hosts, &channel, 0) {
            Err(errno) => assert_eq!(errno, Some(libc::ECONNREFUSED)),
            Ok(_id) => {
                assert!(!hosts.is_iwarp);
                let event = channel.next_event(SECOND).unwrap();
                assert_eq!((event.kind(), event.status()), (EventKind::Rejected, 28));
            }
        }
    }
}

#[test]
fn iwarp_wants_the_tcp_port() {
    for hosts in Hosts::each() {
        hosts.server.occupy_tcp_port(PORT);
        let channel = hosts.server.channel().unwrap();
        let id = channel.create_id(PortSpace::TCP).unwrap();
        id.bind(hosts.address()).unwrap();
        if hosts.is_iwarp {
            errno(id.listen(1), libc::EADDRINUSE);
            // It stays bound.
            errno(id.listen(1), libc::EADDRINUSE);
        } else {
            id.listen(1).unwrap();
        }
    }
}

#[test]
fn the_loopback_address_is_one_for_all_iwarp_devices() {
    let adapters = ["siw0", "siw1"].map(Adapter::iwarp);
    let host = Fabric::new().host(adapters);
    let channel = host.channel().unwrap();
    let id = channel.create_id(PortSpace::TCP).unwrap();
    id.bind(([127, 0, 0, 1], PORT)).unwrap();
    errno(id.listen(1), libc::EADDRINUSE);
}

/// The connection manager takes it for the wildcard, and TCP does not.
#[test]
fn the_loopback_address_takes_other_addresses_on_roce_only() {
    for hosts in Hosts::each() {
        let loopback = CmAddr::from(([127, 0, 0, 1], 0));
        let listener = listen(&hosts, loopback, None);
        let channel = hosts.client.channel().unwrap();
        match connect(&hosts, &channel, 0) {
            Err(errno) => assert_eq!((hosts.is_iwarp, errno), (true, Some(libc::ECONNREFUSED))),
            Ok(_id) => {
                assert!(!hosts.is_iwarp);
                listener.next_request();
            }
        }
    }
}
