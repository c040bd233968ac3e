//! The TCP sockets that siw listens by.
//!
//! A peer that connects TCP and closes it at once may make siw take that for the end of
//! the listener: the socket is closed, and nobody is told (`siw_cm_llp_state_change` of
//! a connection that waits to be accepted finds the listener's endpoint). What is gone
//! shows only in that its address can be bound to again.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, SockaddrStorage, bind, setsockopt, socket,
    sockopt,
};
use rdmacm_addrinfo::interface_addresses;
use rdmacm_core::{CmAddr, RdmaDevice, Transport};

use crate::hub::Tracked;

/// How often it is looked while somebody waits: one system call for each address.
const INTERVAL: Duration = Duration::from_secs(2);

/// The sockets of one listener's addresses; none where iWARP has no part in them.
#[derive(Debug)]
pub(super) struct Sockets(Mutex<State>);

#[derive(Debug)]
struct State {
    probes: Vec<Probe>,
    next: Instant,
    /// One of them is gone. What the kernel keeps for the listener's id is freed then,
    /// and used once more when that is destroyed.
    is_deaf: bool,
    /// The last that was there is gone.
    last: Option<SocketAddr>,
}

/// A socket that cannot be bound while another listens on the address. It belongs to
/// the listener's network namespace, whatever thread asks.
#[derive(Debug)]
struct Probe {
    place: Place,
    socket: OwnedFd,
}

/// Where siw listens for a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    device: Option<u32>,
    interface: String,
    address: SocketAddr,
}

impl Sockets {
    /// Those by which the ids listen. What cannot be found out is not watched.
    pub(super) fn of(ids: &[Tracked], now: Instant) -> Self {
        let interfaces = interfaces();
        // Where there are none the ids need not be asked.
        let ids = ids.iter().filter(|_| !interfaces.is_empty());
        let addresses = ids.filter_map(|one| one.id().local_addr().ok()?);
        let places = addresses.flat_map(|address| places(address, &interfaces));
        Self(Mutex::new(State {
            probes: places.filter_map(Probe::new).collect(),
            next: now.checked_add(INTERVAL).unwrap_or(now),
            is_deaf: false,
            last: None,
        }))
    }

    /// When to look the next time; `None` where there is nothing to look at.
    pub(super) fn next_look(&self) -> Option<Instant> {
        let state = self.state();
        let looks = !state.probes.is_empty() || state.last.is_some();
        looks.then_some(state.next)
    }

    /// Looks.
    ///
    /// # Errors
    /// An address on which nothing listens any more: once for each, and again
    /// and again where no other is left.
    pub(super) fn look(&self, now: Instant) -> Result<(), SocketAddr> {
        let mut state = self.state();
        if let Some(last) = state.last {
            return Err(last);
        }
        state.next = now.checked_add(INTERVAL).unwrap_or(now);
        let Some(place) = state.probes.iter().position(Probe::is_free) else {
            return Ok(());
        };
        let Place { address, .. } = state.probes.swap_remove(place).place;
        state.is_deaf = true;
        if state.probes.is_empty() {
            state.last = Some(address);
        }
        Err(address)
    }

    /// Whether one was found gone.
    pub(super) fn is_deaf(&self) -> bool {
        self.state().is_deaf
    }

    /// Whole between any two statements, so a panic elsewhere while it was locked
    /// leaves nothing broken.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Probe {
    /// `None` where nothing listens on the address by TCP: other iWARP drivers need no
    /// socket of the kernel's.
    fn new(place: Place) -> Option<Self> {
        let family = match place.address {
            SocketAddr::V4(_) => AddressFamily::Inet,
            SocketAddr::V6(_) => AddressFamily::Inet6,
        };
        let flags = SockFlag::SOCK_CLOEXEC;
        let socket = socket(family, SockType::Stream, flags, SockProtocol::Tcp).ok()?;
        // Connections that were accepted keep their port, and nobody from it.
        setsockopt(&socket, sockopt::ReuseAddr, &true).ok()?;
        // Those of other devices may listen on all addresses of theirs.
        let interface = OsString::from(&place.interface);
        let _ = setsockopt(&socket, sockopt::BindToDevice, &interface);
        let probe = Self { place, socket };
        (probe.bind() == Err(Errno::EADDRINUSE)).then_some(probe)
    }

    fn bind(&self) -> Result<(), Errno> {
        let address = SockaddrStorage::from(self.place.address);
        bind(self.socket.as_raw_fd(), &address)
    }

    /// Whether nothing listens there though the device is still there.
    fn is_free(&self) -> bool {
        self.bind().is_ok()
            && places(self.place.address.into(), &interfaces()).contains(&self.place)
    }
}

/// The interfaces that iWARP devices are on, each with its device's index.
fn interfaces() -> Vec<(Option<u32>, String)> {
    let devices = RdmaDevice::list().unwrap_or_default();
    let devices = devices
        .into_iter()
        .filter(|device| device.transport == Transport::IWarp);
    devices
        .flat_map(|device| {
            let ports = device.ports().unwrap_or_default();
            let netdevs = ports.into_iter().filter_map(|port| port.netdev);
            netdevs.map(move |netdev| (device.index, netdev.name))
        })
        .collect()
}

/// Where on these interfaces an address is listened on, or all of its family.
fn places(address: CmAddr, interfaces: &[(Option<u32>, String)]) -> Vec<Place> {
    let is_meant = |here: CmAddr| {
        let any = address.is_unspecified() && address.family() == here.family();
        any || address.is_same_host(&here)
    };
    let locals = interface_addresses().unwrap_or_default();
    let locals = locals
        .into_iter()
        .filter(|local| is_meant(local.address.into()));
    locals
        .flat_map(|local| {
            let mut at = local.address;
            at.set_port(address.port());
            let on = |(_, name): &&(_, String)| *name == local.interface;
            let on_it = interfaces.iter().filter(on);
            let place = |(device, name): &(Option<u32>, String)| Place {
                device: *device,
                interface: name.clone(),
                address: at,
            };
            on_it.map(place).collect::<Vec<_>>()
        })
        .collect()
}
