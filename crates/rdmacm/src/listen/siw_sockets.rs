//! The TCP sockets that siw listens on.
//!
//! Linux's siw closes a listener's socket if a TCP peer disconnects before siw has accepted
//! its connection: until then the connection's socket carries the listener's endpoint and
//! callbacks, and `siw_cm_llp_state_change` closes that endpoint. No event reports it. It
//! shows only in that the address can be bound again.
//!
//! The kernel also frees the endpoint and keeps it in the id's list. Destroying the id uses
//! what was freed (`siw_drop_listeners`).

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rdmacm_core::{CmAddr, DeviceId, DriverId, RdmaDevice, Transport};

use crate::error::Cause;
use crate::event_loop::{EventLoop, ManagedId};

mod probe;

use probe::SocketProbe;

/// How often the sockets are checked while a caller waits for a peer: one system call for
/// each.
const INTERVAL: Duration = Duration::from_secs(2);

/// The sockets of one listener; none without siw devices.
#[derive(Debug)]
pub(super) struct ListenSockets(Mutex<State>);

#[derive(Debug)]
struct State {
    open: Vec<ListenSocket>,
    next_check: Instant,
    /// The ids, by position, that the kernel must not be asked to destroy.
    unsafe_ids: BTreeSet<usize>,
    /// The only socket of a listener on one device has been closed.
    closed: Option<ClosedSocket>,
    /// Whether a device is still there: its removal closes its sockets too.
    is_present: fn(&RdmaDevice) -> bool,
}

/// A socket of one id on one device.
#[derive(Clone, Debug)]
struct ListenSocket {
    id: usize,
    address: CmAddr,
    device: RdmaDevice,
    probe: SocketProbe,
}

/// One that siw has closed.
#[derive(Clone, Debug)]
struct ClosedSocket {
    address: CmAddr,
    device: String,
}

impl ListenSockets {
    /// The sockets that the ids listen on. A socket that cannot be found is not checked, nor
    /// is a device that is added later.
    pub(super) fn for_ids(event_loop: &EventLoop, ids: &[ManagedId]) -> Self {
        let devices = siw_devices(event_loop);
        let mut open = Vec::new();
        // Without siw the ids are not asked.
        let ids = ids.iter().enumerate().filter(|_| !devices.is_empty());
        for (position, managed) in ids {
            open.extend(sockets_of(managed, position, &devices));
        }
        Self::new(open, event_loop.now(), is_present)
    }

    fn new(open: Vec<ListenSocket>, now: Instant, is_present: fn(&RdmaDevice) -> bool) -> Self {
        Self(Mutex::new(State {
            open,
            next_check: later(now),
            unsafe_ids: BTreeSet::new(),
            closed: None,
            is_present,
        }))
    }

    /// When to check the next time; `None` if there is nothing to check.
    pub(super) fn next_check(&self) -> Option<Instant> {
        let state = self.state();
        let checks = !state.open.is_empty() || state.closed.is_some();
        checks.then_some(state.next_check)
    }

    /// Checks the sockets.
    ///
    /// # Errors
    /// [`Cause::ListenerSocketClosed`]: once for each socket of a wildcard address, always
    /// for another one.
    pub(super) fn check(&self, now: Instant) -> Result<(), Cause> {
        let mut state = self.state();
        if state.closed.is_none() {
            state.next_check = later(now);
            let Some(closed) = state.take_closed() else {
                return Ok(());
            };
            let is_wildcard = closed.address.is_unspecified();
            let cause = closed.cause();
            state.closed = Some(closed).filter(|_| !is_wildcard);
            return Err(cause);
        }
        let closed = state.closed.as_ref();
        closed.map_or(Ok(()), |closed| Err(closed.cause()))
    }

    /// Checks once more: the positions of the ids that must not be destroyed.
    pub(super) fn unsafe_ids(&self) -> BTreeSet<usize> {
        let mut state = self.state();
        while state.take_closed().is_some() {}
        state.unsafe_ids.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl State {
    /// A socket that siw has closed, which is not checked again.
    fn take_closed(&mut self) -> Option<ClosedSocket> {
        while let Some(found) = self.open.iter().position(|one| one.probe.bind()) {
            let socket = self.open.swap_remove(found);
            if (self.is_present)(&socket.device) {
                self.unsafe_ids.insert(socket.id);
                // The probe, which has the address now, is dropped.
                return Some(ClosedSocket {
                    address: socket.address,
                    device: socket.device.name,
                });
            }
        }
        None
    }
}

impl ClosedSocket {
    fn cause(&self) -> Cause {
        Cause::ListenerSocketClosed {
            address: self.address,
            device: self.device.clone(),
        }
    }
}

fn later(now: Instant) -> Instant {
    now.checked_add(INTERVAL).unwrap_or(now)
}

/// The siw devices that ids of this channel may be on.
fn siw_devices(event_loop: &EventLoop) -> Vec<RdmaDevice> {
    let is_siw = |device: &RdmaDevice| {
        // The other iWARP drivers do not listen on a socket of the kernel.
        let node = device.uverbs_node().ok().flatten();
        node.is_some_and(|node| node.driver == DriverId::SIW)
    };
    // A simulated kernel has other devices.
    let is_known = |device: &RdmaDevice| is_device(event_loop, device_id(device), device);
    let devices = RdmaDevice::list().unwrap_or_default();
    devices
        .into_iter()
        .filter(|device| device.transport == Transport::IWarp)
        .filter(|device| is_siw(device) && is_known(device))
        .collect()
}

fn device_id(device: &RdmaDevice) -> DeviceId {
    DeviceId {
        index: device.index,
        guid: device.guid,
    }
}

fn is_device(event_loop: &EventLoop, id: DeviceId, device: &RdmaDevice) -> bool {
    event_loop.channel().look_up(id).as_ref() == Some(device)
}

fn is_present(device: &RdmaDevice) -> bool {
    may_be_among(&RdmaDevice::list(), device)
}

/// Only a list without the device proves that it is gone. Without a descriptor for netlink there is
/// no list, or one of sysfs, which does not have the indexes of devices.
fn may_be_among(devices: &rdmacm_core::Result<Vec<RdmaDevice>>, device: &RdmaDevice) -> bool {
    // It may have another name since.
    let may_be_same = |other: &RdmaDevice| {
        let are_known = other.index.is_some() && device.index.is_some();
        other.guid == device.guid && (!are_known || other.index == device.index)
    };
    let devices = devices.as_ref();
    devices.map_or(true, |devices| devices.iter().any(may_be_same))
}

/// An id with a device has one socket, one without a socket on each interface.
fn sockets_of(managed: &ManagedId, id: usize, devices: &[RdmaDevice]) -> Vec<ListenSocket> {
    let Ok(local) = managed.id().addresses() else {
        return Vec::new();
    };
    let Some((address, socket_addr)) = local
        .source
        .and_then(|source| Some((source, source.socket_addr()?)))
    else {
        return Vec::new();
    };
    let socket = |device: &RdmaDevice, interface: Option<&str>| {
        Some(ListenSocket {
            id,
            address,
            device: device.clone(),
            probe: SocketProbe::new(socket_addr, interface)?,
        })
    };
    let event_loop = managed.event_loop();
    let here = |device: &&RdmaDevice| {
        local
            .device
            .is_none_or(|id| is_device(event_loop, id, device))
    };
    let of_device = |device: &RdmaDevice| match local.device {
        Some(_) => socket(device, None),
        None => socket(device, Some(&interface(device)?)),
    };
    devices.iter().filter(here).filter_map(of_device).collect()
}

fn interface(device: &RdmaDevice) -> Option<String> {
    let ports = device.ports().ok()?;
    ports.into_iter().find_map(|port| Some(port.netdev?.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{SocketAddr, TcpListener};

    use rdmacm_core::{Family, Guid};

    /// A listener on an address that no other test uses.
    fn listen(address: [u8; 4]) -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind(SocketAddr::from((address, 0))).unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    fn socket(id: usize, at: SocketAddr, address: CmAddr) -> ListenSocket {
        let device = DeviceId {
            index: Some(7),
            guid: Guid(7),
        };
        ListenSocket {
            id,
            address,
            device: RdmaDevice::new(device, format!("siw{id}"), Transport::IWarp),
            probe: SocketProbe::new(at, None).unwrap(),
        }
    }

    fn is_closed(checked: &Result<(), Cause>, name: &str) -> bool {
        matches!(checked, Err(Cause::ListenerSocketClosed { device, .. }) if device == name)
    }

    #[test]
    fn a_closed_socket_is_reported_and_no_other() {
        let now = Instant::now();
        let (listener, address) = listen([127, 71, 1, 1]);
        let sockets = vec![socket(0, address, address.into())];
        let sockets = ListenSockets::new(sockets, now, |_| true);
        for _ in 0..3 {
            assert_eq!(sockets.next_check(), Some(now + INTERVAL));
            assert!(sockets.check(now).is_ok());
            assert_eq!(sockets.unsafe_ids(), BTreeSet::new());
        }
        drop(listener);
        for _ in 0..3 {
            assert!(is_closed(&sockets.check(now), "siw0"));
            // No request can arrive any more: every caller receives the error.
            assert!(sockets.next_check().is_some());
        }
        assert_eq!(sockets.unsafe_ids(), BTreeSet::from([0]));
    }

    #[test]
    fn each_socket_of_a_wildcard_is_reported_once() {
        let now = Instant::now();
        let any = CmAddr::any(Family::V4);
        let (one, first) = listen([127, 71, 2, 1]);
        let (other, second) = listen([127, 71, 2, 2]);
        let sockets = vec![socket(0, first, any), socket(1, second, any)];
        let sockets = ListenSockets::new(sockets, now, |_| true);
        drop(other);
        assert!(is_closed(&sockets.check(now), "siw1"));
        assert!(sockets.check(now).is_ok());
        assert!(sockets.next_check().is_some());
        drop(one);
        assert!(is_closed(&sockets.check(now), "siw0"));
        assert!(sockets.check(now).is_ok());
        assert_eq!(sockets.next_check(), None);
        assert_eq!(sockets.unsafe_ids(), BTreeSet::from([0, 1]));
    }

    #[test]
    fn a_removed_device_takes_its_socket_along() {
        let now = Instant::now();
        let (listener, address) = listen([127, 71, 3, 1]);
        let sockets = vec![socket(0, address, address.into())];
        let sockets = ListenSockets::new(sockets, now, |_| false);
        drop(listener);
        assert!(sockets.check(now).is_ok());
        assert_eq!(sockets.unsafe_ids(), BTreeSet::new());
        assert_eq!(sockets.next_check(), None);
    }

    #[test]
    fn only_a_list_without_the_device_proves_its_removal() {
        let device = |index, guid| {
            let id = DeviceId {
                index,
                guid: Guid(guid),
            };
            RdmaDevice::new(id, "siw0", Transport::IWarp)
        };
        let looked_for = device(Some(7), 7);
        for (listed, may_be_there) in [
            (vec![device(Some(7), 7)], true),
            (vec![device(None, 7)], true),
            (vec![device(Some(8), 7)], false),
            (vec![device(None, 8)], false),
            (vec![], false),
        ] {
            assert_eq!(may_be_among(&Ok(listed), &looked_for), may_be_there);
        }
        assert!(may_be_among(&Err(rdmacm_core::Error::Busy), &looked_for));
        assert!(may_be_among(&Ok(vec![looked_for]), &device(None, 7)));
    }

    #[test]
    fn the_last_check_finds_what_nobody_waited_for() {
        let (listener, address) = listen([127, 71, 4, 1]);
        let sockets = vec![socket(3, address, address.into())];
        let sockets = ListenSockets::new(sockets, Instant::now(), |_| true);
        drop(listener);
        assert_eq!(sockets.unsafe_ids(), BTreeSet::from([3]));
    }

    #[test]
    fn without_siw_nothing_is_checked() {
        let sockets = ListenSockets::new(Vec::new(), Instant::now(), |_| true);
        assert_eq!(sockets.next_check(), None);
        assert!(sockets.check(Instant::now()).is_ok());
    }
}
