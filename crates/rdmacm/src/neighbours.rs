//! Neighbours of RoCE devices.
//!
//! The kernel needs the MAC address of a host on the device's network to send to it. It asks for
//! an unknown one when a queue pair moves to RTR and when an address handle is created
//! (`ib_resolve_eth_dmac`), and sleeps for up to a second in the thread that does so if nobody
//! answers. Peers say which host that is. So it is asked for before, by an id of the connection
//! manager, for which nobody sleeps.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rdmacm_core::{CmAddr, EventKind, Gid, IdHandle, RdmaDevice};

use crate::attempt::{Attempt, ends_attempt};
use crate::bounded_map::BoundedMap;
use crate::error::Cause;
use crate::event_loop::{EventLoop, EventQueue, ManagedId, QueuedEvent};
use crate::id_options::IdOptions;

/// How many neighbours an event loop remembers.
const MAX_NEIGHBOURS: usize = 256;

/// How long a neighbour that has answered needs no question: as long as the kernel waits before it
/// doubts an answer (`delay_first_probe_time`).
const VALIDITY: Duration = Duration::from_secs(5);

/// As long as the kernel asks an unknown neighbour: three times, a second apart (`mcast_solicit`).
const TIMEOUT: Duration = Duration::from_secs(3);

/// A host, and the network interface that leads to it if the address means nothing without;
/// otherwise 0.
type Neighbour = (Gid, u32);

/// Those that have answered of late.
#[derive(Debug, Default)]
struct Neighbours(Mutex<BoundedMap<Neighbour, Instant, MAX_NEIGHBOURS>>);

impl Neighbours {
    fn of(event_loop: &EventLoop) -> Arc<Self> {
        event_loop.extensions().get_or_default()
    }

    fn is_known(&self, neighbour: Neighbour, now: Instant) -> bool {
        let answered = self.lock().get(&neighbour).copied();
        answered.is_some_and(|answered| now.saturating_duration_since(answered) < VALIDITY)
    }

    fn record(&self, neighbour: Neighbour, now: Instant) {
        let _ = self.lock().insert(neighbour, now);
    }

    fn lock(&self) -> MutexGuard<'_, BoundedMap<Neighbour, Instant, MAX_NEIGHBOURS>> {
        self.0.lock()
    }
}

/// A question for a neighbour.
#[derive(Debug)]
pub(crate) struct NeighbourLookup {
    id: ManagedId,
    neighbour: Neighbour,
}

impl NeighbourLookup {
    /// Asks for the neighbour to which `id` is about to send; `None` if the kernel need not be
    /// asked, or cannot be: then sending decides.
    pub(crate) fn begin(
        event_loop: &Arc<EventLoop>,
        id: &IdHandle,
        path: &NeighbourPath,
    ) -> Option<Self> {
        let destination: SocketAddr = match host_address(path.gid)? {
            IpAddr::V6(v6) if v6.is_unicast_link_local() => {
                let device = id.rdma_device().ok()??;
                if holds_mac(v6, path.is_roce_v1(&device)) {
                    return None;
                }
                SocketAddrV6::new(v6, SOME_PORT, 0, path.interface(&device)?).into()
            }
            ip => (ip, SOME_PORT).into(),
        };
        let neighbour = (path.gid, scope_id(destination));
        if Neighbours::of(event_loop).is_known(neighbour, event_loop.now()) {
            return None;
        }
        let source = id.addresses().ok()?.source;
        let asking = IdOptions::default().create(event_loop, EventQueue::new());
        let asking = asking.ok()?;
        let source = source.and_then(|source| source_for(source, destination));
        asking
            .id()
            .resolve_addr(source, destination, TIMEOUT)
            .ok()?;
        Some(Self {
            id: asking,
            neighbour,
        })
    }

    pub(crate) fn queue(&self) -> &Arc<EventQueue> {
        self.id.queue()
    }

    /// The outcome, if the event is that of the question.
    pub(crate) fn outcome(&self, event: &QueuedEvent) -> Option<Result<(), Cause>> {
        let QueuedEvent::Cm(event) = event else {
            return None;
        };
        if event.kind() == EventKind::AddrResolved && event.failure().is_none() {
            let event_loop = self.id.event_loop();
            Neighbours::of(event_loop).record(self.neighbour, event_loop.now());
            return Some(Ok(()));
        }
        ends_attempt(event).then(|| Err(Cause::Event(event.as_failure())))
    }

    /// Waits for the outcome.
    pub(crate) async fn finish(self, attempt: &Attempt) -> Result<(), Cause> {
        loop {
            let event = self.id.next(attempt.until).await?;
            if let Some(outcome) = self.outcome(&event) {
                return outcome;
            }
        }
    }
}

/// The port does not matter.
const SOME_PORT: u16 = 1;

/// Where a device is about to send to, and from.
#[derive(Debug)]
pub(crate) struct NeighbourPath {
    pub(crate) gid: Gid,
    pub(crate) port: u8,
    pub(crate) source_gid_index: u8,
}

impl NeighbourPath {
    /// The network interface of the source, for an address that means nothing without it.
    fn interface(&self, device: &RdmaDevice) -> Option<u32> {
        let netdev = device.gid_netdev(self.port, self.source_gid_index.into());
        netdev.ok()?.index
    }

    /// Whether the source is known to be a GID of RoCE version 1.
    fn is_roce_v1(&self, device: &RdmaDevice) -> bool {
        let is_v1 = device.is_roce_v1(self.port, self.source_gid_index.into());
        is_v1.unwrap_or(false)
    }
}

/// Whether the kernel takes the MAC address of a host from its address
/// (`ib_resolve_unicast_gid_dmac`, `rdma_link_local_addr`).
fn holds_mac(destination: Ipv6Addr, is_roce_v1: bool) -> bool {
    is_roce_v1 && destination.segments().starts_with(&[0xfe80, 0, 0, 0])
}

fn scope_id(address: SocketAddr) -> u32 {
    match address {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(v6) => v6.scope_id(),
    }
}

/// The source address for a destination. The kernel chooses one if it is of another family, or
/// link-local for a destination that is not.
fn source_for(source: CmAddr, destination: SocketAddr) -> Option<CmAddr> {
    match (source.socket_addr()?, destination) {
        (SocketAddr::V4(source), SocketAddr::V4(_)) => Some(CmAddr::from((*source.ip(), 0))),
        (SocketAddr::V6(source), SocketAddr::V6(destination)) => {
            let is_scoped = source.ip().is_unicast_link_local();
            if is_scoped && destination.scope_id() == 0 {
                return None;
            }
            Some(SocketAddrV6::new(*source.ip(), 0, 0, destination.scope_id()).into())
        }
        _ => None,
    }
}

/// The address of the neighbour that the kernel asks for. The MAC address of a group is part of its
/// address.
fn host_address(gid: Gid) -> Option<IpAddr> {
    let ip = Ipv6Addr::from(gid.0);
    let ip = match ip.to_ipv4_mapped() {
        Some(v4) => IpAddr::V4(v4),
        None => IpAddr::V6(ip),
    };
    let is_host = !(ip.is_multicast() || ip.is_unspecified());
    is_host.then_some(ip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn the_kernel_asks_for_hosts_only() {
        let v4 = Ipv4Addr::new(10, 71, 1, 1);
        assert_eq!(host_address(v4.to_ipv6_mapped().into()), Some(v4.into()));
        for v6 in ["fd00::7", "fe80::7"] {
            let v6: Ipv6Addr = v6.parse().unwrap();
            assert_eq!(host_address(v6.into()), Some(v6.into()));
        }
        for other in ["ff02::1", "::", "::ffff:224.0.0.1", "::ffff:0.0.0.0"] {
            let other: Ipv6Addr = other.parse().unwrap();
            assert_eq!(host_address(other.into()), None, "{other}");
        }
    }

    #[test]
    fn a_link_local_address_of_roce_v1_holds_the_mac() {
        for (destination, is_roce_v1, expected) in [
            ("fe80::5054:ff:fe12:3456", true, true),
            ("fe80::5054:ff:fe12:3456", false, false),
            // Of the link too, but not one of the kernel's.
            ("fe80:1::5054:ff:fe12:3456", true, false),
            ("fd71::5054:ff:fe12:3456", true, false),
        ] {
            let destination: Ipv6Addr = destination.parse().unwrap();
            let holds = holds_mac(destination, is_roce_v1);
            assert_eq!(holds, expected, "{destination} {is_roce_v1}");
        }
    }

    #[test]
    fn a_source_has_the_family_and_the_scope_of_its_destination() {
        let v4 = CmAddr::from(([10, 71, 1, 1], 7));
        let global: CmAddr = "[fd00::7]:7".parse().unwrap();
        let local: CmAddr = "[fe80::7]:7".parse().unwrap();
        let to = |text: &str| text.parse::<SocketAddr>().unwrap();
        let to_local = SocketAddrV6::new("fe80::8".parse().unwrap(), 1, 0, 3).into();
        let from_local = SocketAddrV6::new("fe80::7".parse().unwrap(), 0, 0, 3);
        for (source, destination, suits) in [
            (v4, to("10.71.1.2:1"), Some(v4.with_port(0))),
            (v4, to("[fd00::8]:1"), None),
            (global, to("[fd00::8]:1"), Some(global.with_port(0))),
            (global, to("10.71.1.2:1"), None),
            (local, to("[fd00::8]:1"), None),
            (local, to_local, Some(from_local.into())),
        ] {
            assert_eq!(
                source_for(source, destination),
                suits,
                "{source} {destination}"
            );
        }
    }

    #[test]
    fn an_answer_is_valid_for_a_while() {
        let (neighbours, now) = (Neighbours::default(), Instant::now());
        let host = (Gid::LOOPBACK, 0);
        assert!(!neighbours.is_known(host, now));
        neighbours.record(host, now);
        assert!(neighbours.is_known(host, now + VALIDITY / 2));
        assert!(
            !neighbours.is_known((Gid::LOOPBACK, 1), now),
            "another link"
        );
        assert!(!neighbours.is_known(host, now + VALIDITY));
        neighbours.record(host, now + VALIDITY);
        assert!(neighbours.is_known(host, now + VALIDITY));
    }
}
