//! TCP below iWARP connections: a segment that cannot leave or arrive yet waits until it can,
//! and none overtakes another.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rdmacm_core::{Gid, Transport};

use crate::network::Packet;
use crate::sim_state::SimState;
use crate::timer::Timer;

/// The segments of a fabric's connections.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    /// Those whose host does not respond, or has no link.
    unsent: Vec<Packet>,
    /// Those whose receiver does not respond, or has no link.
    undelivered: Vec<Packet>,
    /// When the last segment from one address to another arrives.
    last_arrivals: BTreeMap<(Gid, Gid), Instant>,
}

/// Sends a segment, now or once its host responds.
pub(crate) fn send(state: &mut SimState, segment: Packet) {
    let Some(receiver) = state.owner(segment.destination) else {
        return;
    };
    if state.owner(segment.source).is_none() {
        return;
    }
    if !state.can_leave(&segment) {
        return state.network.segments.unsent.push(segment);
    }
    let delay = state.delay(segment.host, receiver);
    let delay = keep_order(state, &segment, delay);
    state.clock.schedule(delay, Timer::Deliver(segment));
}

/// The time until a segment arrives that is not before those sent earlier.
fn keep_order(state: &mut SimState, segment: &Packet, delay: Duration) -> Duration {
    let now = state.clock.now();
    let arrivals = &mut state.network.segments.last_arrivals;
    let last = arrivals
        .entry((segment.source, segment.destination))
        .or_insert(now);
    let delay = delay.max(last.saturating_duration_since(now));
    *last = now.checked_add(delay).unwrap_or(*last);
    delay
}

/// Keeps a segment that its receiver cannot get now. One to an address that is gone is lost.
pub(crate) fn hold(state: &mut SimState, segment: Packet) {
    if state.owner(segment.destination).is_some() {
        state.network.segments.undelivered.push(segment);
    }
}

/// A host responds again, or has a link again.
pub(crate) fn resume(state: &mut SimState) {
    for segment in std::mem::take(&mut state.network.segments.undelivered) {
        let timer = Timer::Deliver(segment);
        state.clock.schedule(Duration::ZERO, timer);
    }
    for segment in std::mem::take(&mut state.network.segments.unsent) {
        send(state, segment);
    }
}

impl SimState {
    /// The host whose iWARP device has an address, whether it has a link or not.
    fn owner(&self, address: Gid) -> Option<usize> {
        self.hosts.iter().position(|host| {
            let mut devices = host.present_devices();
            devices.any(|(_, device)| {
                device.transport == Transport::IWarp && device.has_ip_gid(address)
            })
        })
    }
}
