//! Neighbours of RoCE devices.
//!
//! The kernel needs the MAC address of a host on the device's network to send to it. It asks for
//! an unknown one when a queue pair moves to RTR and when an address handle is created
//! (`ib_resolve_eth_dmac`), and sleeps for up to a second in the thread that does so if nobody
//! answers. Peers say which host that is. So it is asked for before, by an id of the connection
//! manager, for which nobody sleeps.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdmacm_core::{CmAddr, EventKind, Gid};

use crate::connect::{Attempt, ends_attempt};
use crate::error::Cause;
use crate::event_loop::{EventLoop, EventQueue, ManagedId, QueuedEvent};
use crate::id_options::IdOptions;
use crate::newest::Newest;

/// How many neighbours an event loop remembers.
const MAX_NEIGHBOURS: usize = 256;

/// How long a neighbour that has answered needs no question. The kernel knows it for longer: it
/// is asked again after 15 seconds or more, and used meanwhile (`neigh_event_send`).
const VALIDITY: Duration = Duration::from_secs(10);

/// As long as the kernel would sleep.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Those that have answered of late.
#[derive(Debug, Default)]
struct Neighbours(Mutex<Newest<Gid, Instant, MAX_NEIGHBOURS>>);

impl Neighbours {
    fn of(event_loop: &EventLoop) -> Arc<Self> {
        event_loop.extensions().get_or_default()
    }

    fn is_known(&self, gid: Gid, now: Instant) -> bool {
        let answered = self.newest().get(&gid).copied();
        answered.is_some_and(|answered| now.saturating_duration_since(answered) < VALIDITY)
    }

    fn has_answered(&self, gid: Gid, now: Instant) {
        let _ = self.newest().insert(gid, now);
    }

    fn newest(&self) -> MutexGuard<'_, Newest<Gid, Instant, MAX_NEIGHBOURS>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question for a neighbour.
#[derive(Debug)]
pub(crate) struct NeighbourLookup {
    id: ManagedId,
    gid: Gid,
}

impl NeighbourLookup {
    /// Asks for the neighbour with this GID, on behalf of an id with this source address; `None` if
    /// the kernel need not be asked.
    pub(crate) fn begin(
        event_loop: &Arc<EventLoop>,
        source: impl FnOnce() -> rdmacm_core::Result<Option<CmAddr>>,
        gid: Gid,
    ) -> rdmacm_core::Result<Option<Self>> {
        let Some(ip) = asked_for(gid) else {
            return Ok(None);
        };
        if Neighbours::of(event_loop).is_known(gid, event_loop.now()) {
            return Ok(None);
        }
        let source = source()?.map(|source| source.with_port(0));
        let source = source.filter(|source| source.ip().is_some_and(|own| is_alike(own, ip)));
        let id = IdOptions::default().create(event_loop.channel())?;
        let id = ManagedId::new(event_loop, id, EventQueue::new());
        id.id().resolve_addr(source, (ip, ANY_PORT), TIMEOUT)?;
        Ok(Some(Self { id, gid }))
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
            Neighbours::of(event_loop).has_answered(self.gid, event_loop.now());
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
const ANY_PORT: u16 = 1;

fn is_alike(own: IpAddr, other: IpAddr) -> bool {
    own.is_ipv4() == other.is_ipv4()
}

/// The address of the neighbour that the kernel asks for. The MAC address of a link-local one, and
/// of a group, is part of the address (`rdma_get_ll_mac`, `rdma_get_mcast_mac`).
fn asked_for(gid: Gid) -> Option<IpAddr> {
    let ip = Ipv6Addr::from(gid.0);
    let ip = match ip.to_ipv4_mapped() {
        Some(v4) => IpAddr::V4(v4),
        None => IpAddr::V6(ip),
    };
    let has_mac = match ip {
        IpAddr::V4(_) => false,
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    let is_host = !(has_mac || ip.is_multicast() || ip.is_unspecified());
    is_host.then_some(ip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn the_kernel_asks_for_hosts_only() {
        let v4 = Ipv4Addr::new(10, 71, 1, 1);
        assert_eq!(asked_for(v4.to_ipv6_mapped().into()), Some(v4.into()));
        let v6: Ipv6Addr = "fd00::7".parse().unwrap();
        assert_eq!(asked_for(v6.into()), Some(v6.into()));
        for other in [
            "fe80::1",
            "ff02::1",
            "::",
            "::ffff:224.0.0.1",
            "::ffff:0.0.0.0",
        ] {
            let other: Ipv6Addr = other.parse().unwrap();
            assert_eq!(asked_for(other.into()), None, "{other}");
        }
    }

    #[test]
    fn an_answer_is_valid_for_a_while() {
        let (neighbours, now) = (Neighbours::default(), Instant::now());
        assert!(!neighbours.is_known(Gid::LOOPBACK, now));
        neighbours.has_answered(Gid::LOOPBACK, now);
        assert!(neighbours.is_known(Gid::LOOPBACK, now + VALIDITY / 2));
        assert!(!neighbours.is_known(Gid::LOOPBACK, now + VALIDITY));
        neighbours.has_answered(Gid::LOOPBACK, now + VALIDITY);
        assert!(neighbours.is_known(Gid::LOOPBACK, now + VALIDITY));
    }
}
