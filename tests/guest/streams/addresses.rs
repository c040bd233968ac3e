//! Streams to addresses of IPv6 and to names, and from a source address.

use std::net::SocketAddr;
use std::thread;

use rdmacm::{Connector, RdmaListener, RdmaStream, StreamOptions};
use rdmacm_tests::{PATIENCE, Site, Soft};
use rdmacm_tests_macros::case;

use super::rstream::Test;
use super::{Pair, accept, bytes, carry};
use crate::rdma_core::RdmaCore;

/// Connects to a listener, and carries bytes in both directions. Returns the client's address.
fn carry_to(listener: &RdmaListener, connect: impl FnOnce() -> RdmaStream + Send) -> SocketAddr {
    let (pair, peer) = thread::scope(|scope| {
        let client = scope.spawn(connect);
        let (server, peer) = accept(listener);
        let client = client.join().unwrap();
        (Pair { client, server }, peer)
    });
    pair.be_patient();
    let Pair { client, server } = &pair;
    carry(client, server, &bytes(100_000));
    carry(server, client, &bytes(100_000));
    // A request to rxe does not say the scope of an address.
    let without_scope = |address: SocketAddr| (address.ip(), address.port());
    let local = client.local_addr().unwrap();
    assert_eq!(without_scope(local), without_scope(peer));
    assert_eq!(server.peer_addr().unwrap(), peer);
    let address = listener.local_addr().unwrap();
    assert_eq!(client.peer_addr().unwrap(), address);
    assert_eq!(server.local_addr().unwrap(), address);
    peer
}

#[case]
fn ipv6_carries_bytes(site: &Site) {
    let listener = RdmaListener::bind(site.v6(0)).unwrap();
    let address = listener.local_addr().unwrap();
    let peer = carry_to(&listener, || RdmaStream::connect(address).unwrap());
    assert_eq!(peer.ip(), site.v6);
}

/// The guest's /etc/hosts has names for the addresses of both families.
#[case]
fn a_name_leads_to_the_peer(site: &Site) {
    let [v4, v6] = match site.soft {
        Soft::Rxe => ["rxe", "rxe6"],
        Soft::Siw => ["siw", "siw6"],
    };
    for (name, address) in [(v4, site.v4(0)), (v6, site.v6(0))] {
        let listener = RdmaListener::bind(address).unwrap();
        let name = (name, listener.local_addr().unwrap().port());
        carry_to(&listener, || RdmaStream::connect(name).unwrap());
    }
}

/// The link-local address is another one of the same device.
#[case]
fn a_source_address_is_that_of_the_client(site: &Site) {
    let source = site.link_local(site.scope_id());
    let listener = RdmaListener::bind(site.v6(0)).unwrap();
    let address = listener.local_addr().unwrap();
    let connector = Connector::new(address)
        .source_address(source)
        .deadline(PATIENCE);
    let connect = || connector.connect_stream(StreamOptions::new()).unwrap();
    let peer = carry_to(&listener, connect);
    assert_eq!(Some(peer.ip()), source.ip());
}

#[case]
fn rstream_exchanges_bytes_over_ipv6(site: &Site) {
    let test = Test::new(5000, 20, 5).over_ipv6();
    test.in_both_roles(site, &StreamOptions::new());
}

#[case]
fn rstream_connects_from_a_source_address(site: &Site) {
    let source = site.link_local(site.scope_id()).ip().unwrap();
    let scoped = format!("{source}%{}", site.netdev);
    let test = Test::new(5000, 20, 5).over_ipv6();
    for rdma_core in RdmaCore::compared() {
        let options = StreamOptions::new();
        let peer = test.as_server_for(site, *rdma_core, &options, &["-b", &scoped]);
        assert_eq!(peer, source);
    }
}
