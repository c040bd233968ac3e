//! The simulated kernel, through the library.
#![cfg(test)]

mod addresses;
mod attributes;
mod clock;
mod connected;
mod connections;
mod datagrams;
mod faults;
mod forked;
mod ids;
mod infiniband;
mod invalid_requests;
mod iwarp_queue_pairs;
mod listening;
mod migration;
mod pair;
mod queue_pair_states;
mod queue_pairs;
mod random_commands;
mod services;
mod shared_receive_queues;
mod states;
mod verbs_objects;

use std::fmt::Debug;
use std::time::Duration;

use rdmacm_core::{CmId, Error, EventChannel, EventKind, Gid, IbAddr, PortSpace};
use rdmacm_sim::{Adapter, Fabric, Host, Port};

const SECOND: Duration = Duration::from_secs(1);
/// The port of the host that is tested.
const GID: &str = "fe80::1";
/// The port of the other host.
const PEER: &str = "fe80::2";

fn gid(text: &str) -> Gid {
    text.parse().unwrap()
}

/// A host to test and a peer.
struct TwoHosts {
    fabric: Fabric,
    here: Host,
    there: Host,
}

impl TwoHosts {
    fn new() -> Self {
        let fabric = Fabric::new();
        let here = fabric.host([Adapter::infiniband("mlx5_0").port(Port::new(gid(GID)))]);
        let there = fabric.host([Adapter::infiniband("mlx5_0").port(Port::new(gid(PEER)))]);
        Self {
            fabric,
            here,
            there,
        }
    }

    fn channel(&self) -> EventChannel {
        self.here.channel().unwrap()
    }
}

/// An id with the peer's address.
fn resolved(channel: &EventChannel) -> CmId {
    let id = channel.create_id(PortSpace::TCP).unwrap();
    let to = IbAddr::new(gid(PEER)).with_ip_service(PortSpace::TCP, 7471);
    id.resolve_addr(None, to, SECOND).unwrap();
    expect(channel, EventKind::AddrResolved);
    id
}

#[track_caller]
fn expect(channel: &EventChannel, kind: EventKind) {
    let event = channel.next_event(SECOND).unwrap();
    assert_eq!(event.kind(), kind, "{:?}", event.failure());
}

#[track_caller]
fn errno<T: Debug>(outcome: Result<T, Error>, errno: i32) {
    let error = outcome.unwrap_err();
    assert_eq!(error.raw_os_error(), Some(errno), "{error}");
}
