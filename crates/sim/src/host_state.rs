//! The state of one host's kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use rdmacm_abi::{Ece, EventNumber, EventParam, EventResponse, PortSpace, Reserved};
use rdmacm_core::Transport;

use crate::adapter::Adapter;
use crate::address::Address;
use crate::device::Device;
use crate::event_queue::{EventQueue, QueuedEvent};
use crate::held_command::Hold;
use crate::id::{Attached, Id, IdKey, State};
use crate::kernel_command::KernelCommand;
use crate::kernel_version::KernelVersion;
use crate::multicast::Group;

/// The state of one host's kernel.
#[derive(Debug)]
pub(crate) struct HostState {
    pub(crate) name: String,
    pub(crate) devices: Vec<Device>,
    pub(crate) version: KernelVersion,
    /// Those of all files, as in the kernel's `ctx_table`.
    pub(crate) ids: BTreeMap<u32, Id>,
    pub(crate) files: BTreeMap<u64, EventQueue>,
    /// As in the kernel's `multicast_table`.
    pub(crate) groups: BTreeMap<u32, Group>,
    /// The ids of connections by their communication ids.
    pub(crate) connections: BTreeMap<u32, u32>,
    /// The last serial number given to an id or a file.
    serial: u64,
    /// The last port given to an id that named none.
    pub(crate) last_port: u16,
    /// Commands that fail on request.
    pub(crate) failures: Vec<CommandFailure>,
    /// Commands that wait on request.
    pub(crate) holds: Vec<Arc<Hold>>,
    /// TCP ports that other programs use.
    pub(crate) tcp_ports: BTreeSet<u16>,
    /// The addresses of network interfaces without an RDMA device.
    pub(crate) non_rdma_addresses: BTreeSet<IpAddr>,
    /// Where no route leads.
    pub(crate) unroutable: BTreeSet<IpAddr>,
    pub(crate) is_responding: bool,
    /// How much longer its messages take, either way.
    pub(crate) delay: Duration,
}

/// Commands that fail on request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandFailure {
    pub(crate) command: KernelCommand,
    pub(crate) count: usize,
    pub(crate) errno: i32,
}

/// What an event says besides its number.
#[derive(Clone, Debug)]
pub(crate) struct EventDetails {
    pub(crate) status: i32,
    pub(crate) param: Option<Box<EventParam>>,
    pub(crate) ece: Ece,
}

impl EventDetails {
    pub(crate) const NONE: Self = Self::with_status(0);

    pub(crate) const fn with_status(status: i32) -> Self {
        Self {
            status,
            param: None,
            ece: Ece {
                vendor_id: 0,
                options: 0,
            },
        }
    }

    pub(crate) fn with_errno(errno: Errno) -> Self {
        Self::with_status(-(errno as i32))
    }

    pub(crate) fn with_param(param: &EventParam) -> Self {
        Self {
            param: Some(Box::new(*param)),
            ..Self::NONE
        }
    }

    /// The event as `GET_EVENT` returns it.
    pub(crate) fn into_response(self, uid: u64, id: u32, event: EventNumber) -> EventResponse {
        EventResponse {
            uid,
            id,
            event,
            raw_status: u32::from_ne_bytes(self.status.to_ne_bytes()),
            param: self.param.map_or(EventParam::ZERO, |param| *param),
            reserved: Reserved::ZERO,
            ece: self.ece,
        }
    }
}

impl HostState {
    /// A machine that is the host of this index.
    pub(crate) fn new(
        index: usize,
        name: String,
        adapters: impl IntoIterator<Item = Adapter>,
    ) -> Self {
        let adapters = adapters.into_iter();
        Self {
            name,
            devices: adapters
                .map(|adapter| Device::new(index, adapter))
                .collect(),
            version: KernelVersion::default(),
            ids: BTreeMap::new(),
            files: BTreeMap::new(),
            groups: BTreeMap::new(),
            connections: BTreeMap::new(),
            serial: 0,
            last_port: 0,
            failures: Vec::new(),
            holds: Vec::new(),
            tcp_ports: BTreeSet::new(),
            non_rdma_addresses: BTreeSet::new(),
            unroutable: BTreeSet::new(),
            is_responding: true,
            delay: Duration::ZERO,
        }
    }

    pub(crate) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// The devices that were not removed, with their indexes.
    pub(crate) fn present_devices(&self) -> impl Iterator<Item = (usize, &Device)> {
        let devices = self.devices.iter().enumerate();
        devices.filter(|(_, device)| !device.is_removed)
    }

    /// The ports of all InfiniBand devices.
    pub(crate) fn infiniband_ports(
        &self,
    ) -> impl Iterator<Item = (Attached, &crate::adapter::Port)> {
        self.present_devices().flat_map(|(device, of)| {
            of.numbered_ports()
                .map(move |(port, of)| (Attached { device, port }, of))
        })
    }

    pub(crate) fn transport(&self, attached: Option<Attached>) -> Option<Transport> {
        let device = self.devices.get(attached?.device)?;
        Some(device.transport)
    }

    /// Adds an id under the lowest free number, from 0.
    pub(crate) fn add(&mut self, host: usize, id: Id) -> Result<IdKey, Errno> {
        let number = (0..u32::MAX)
            .find(|number| !self.ids.contains_key(number))
            .ok_or(Errno::ENOMEM)?;
        let serial = id.serial;
        self.ids.insert(number, id);
        Ok(IdKey {
            host,
            number,
            serial,
        })
    }

    /// An id of a file: `ENOENT` if there is none, `EINVAL` if it is another file's,
    /// `ENXIO` if its device was removed (`ucma_get_ctx`).
    pub(crate) fn find(&mut self, file: u64, number: u32) -> Result<&mut Id, Errno> {
        let id = self.find_any(file, number)?;
        if id.state == State::DeviceRemoval {
            return Err(Errno::ENXIO);
        }
        Ok(id)
    }

    /// An id of a file, whether its device was removed or not.
    pub(crate) fn find_any(&mut self, file: u64, number: u32) -> Result<&mut Id, Errno> {
        let id = self.ids.get_mut(&number).ok_or(Errno::ENOENT)?;
        if id.is_destroying {
            Err(Errno::ENOENT)
        } else if id.file == file {
            Ok(id)
        } else {
            Err(Errno::EINVAL)
        }
    }

    /// An id that is attached to a device (`ucma_get_ctx_dev`).
    pub(crate) fn find_attached(&mut self, file: u64, number: u32) -> Result<&mut Id, Errno> {
        let id = self.find(file, number)?;
        if id.attached.is_some() {
            Ok(id)
        } else {
            Err(Errno::EINVAL)
        }
    }

    /// Queues an event, but none for an id without a uid (`ucma_event_handler`).
    pub(crate) fn post(&mut self, number: u32, event: EventNumber, details: EventDetails) {
        let Some(id) = self.ids.get(&number).filter(|id| id.uid != 0) else {
            return;
        };
        let queued = QueuedEvent {
            id: number,
            group: None,
            child: None,
            response: details.into_response(id.uid, number, event),
        };
        if let Some(file) = self.files.get_mut(&id.file) {
            file.push(queued);
        }
    }

    /// Whether a port of a port space is free for an address (`cma_check_port`).
    pub(crate) fn check_port(
        &self,
        number: u32,
        bound: (PortSpace, u16),
        address: &Address,
        may_reuse: bool,
    ) -> Result<(), Errno> {
        let af_only = self.ids.get(&number).is_some_and(|id| id.options.af_only);
        for (_, id) in self.ids.iter().filter(|(other, _)| **other != number) {
            let (Some(other), true) = (id.source, id.bound == Some(bound)) else {
                continue;
            };
            let is_shared = may_reuse && id.options.reuse_address;
            let is_separate = af_only && id.options.af_only && address.family() != other.family();
            if is_shared || is_separate {
                continue;
            }
            if address.is_any() || other.is_any() {
                return Err(Errno::EADDRNOTAVAIL);
            }
            if address.is_same_host(&other) {
                return Err(Errno::EADDRINUSE);
            }
        }
        Ok(())
    }

    /// What a command waits for on request.
    pub(crate) fn take_hold(&mut self, command: KernelCommand) -> Option<Arc<Hold>> {
        // One that was released before its command came holds none.
        self.holds.retain(|hold| !hold.is_released());
        let at = self.holds.iter().position(|hold| hold.is_for(command))?;
        Some(self.holds.remove(at))
    }

    /// The error number with which a command fails on request.
    pub(crate) fn take_failure(&mut self, command: impl Into<KernelCommand>) -> Option<i32> {
        let command = command.into();
        let at = self
            .failures
            .iter()
            .position(|failure| failure.command == command)?;
        let failure = self.failures.get_mut(at)?;
        let errno = failure.errno;
        failure.count -= 1;
        if failure.count == 0 {
            self.failures.remove(at);
        }
        Some(errno)
    }
}
