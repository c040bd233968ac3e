//! A machine on the fabric.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rdmacm_core::ucma::UcmaFile;
use rdmacm_core::{ChannelOptions, EventChannel};

use crate::destroy;
use crate::event_queue::{EventQueue, FileKey};
use crate::held_command::{HeldCommand, Hold};
use crate::host_state::{CommandFailure, HostState};
use crate::kernel_command::KernelCommand;
use crate::kernel_version::KernelVersion;
use crate::network::{Drop, MessageKind};
use crate::readiness::Readiness;
use crate::sim_state::SharedState;
use crate::tcp;
use crate::ucma_file::SimFile;
use crate::verbs::VerbsObjects;

/// A machine with its own kernel, see [`Fabric::host`](crate::Fabric::host).
///
/// A clone is the same machine.
#[derive(Clone, Debug)]
pub struct Host {
    state: Arc<SharedState>,
    index: usize,
}

impl Host {
    pub(crate) fn new(state: Arc<SharedState>, index: usize) -> Self {
        Self { state, index }
    }

    pub(crate) fn state(&self) -> &Arc<SharedState> {
        &self.state
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }

    fn change<T>(&self, change: impl FnOnce(&mut HostState) -> T) -> Option<T> {
        self.state
            .change(|state| state.hosts.get_mut(self.index).map(change))
    }

    pub(crate) fn with_state<T>(&self, read: impl FnOnce(&HostState) -> T) -> Option<T> {
        self.state.lock().hosts.get(self.index).map(read)
    }

    /// Makes the machine run this kernel.
    #[must_use]
    pub fn kernel_version(self, version: KernelVersion) -> Self {
        self.change(|host| host.version = version);
        self
    }

    /// The IP addresses of the machine, device by device.
    #[must_use]
    pub fn addresses(&self) -> Vec<IpAddr> {
        let addresses = self.with_state(|host| {
            let addresses = host.devices.iter().flat_map(|device| &device.addresses);
            addresses.copied().collect()
        });
        addresses.unwrap_or_default()
    }

    /// The first IP address of the machine; `None` if it has none.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        self.addresses().first().copied()
    }

    /// Opens the connection manager's device of this machine, for
    /// [`ChannelOptions::ucma`]. The devices that belong to it are the host itself, for
    /// [`ChannelOptions::devices`].
    ///
    /// # Errors
    /// That of `eventfd(2)`: the readiness descriptor is a real one.
    pub fn open(&self) -> io::Result<Arc<dyn UcmaFile>> {
        let readiness = Readiness::new()?;
        let eventfd = readiness.eventfd();
        let serial = self.change(|host| {
            let serial = host.next_serial();
            host.files.insert(serial, EventQueue::new(readiness));
            serial
        });
        let file = FileKey {
            host: self.index,
            serial: serial.ok_or(io::ErrorKind::NotFound)?,
        };
        let state = Arc::clone(&self.state);
        Ok(Arc::new(SimFile::new(state, file, eventfd)))
    }

    /// The options of an event channel on this machine, to be changed before it is opened.
    ///
    /// A node of the crate [`rdmacm`](https://docs.rs/rdmacm) takes them as
    /// `Node::options().channel(host.channel_options()?)`.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn channel_options(&self) -> io::Result<ChannelOptions> {
        let options = EventChannel::options().ucma(self.open()?);
        Ok(options.devices(Arc::new(self.clone())))
    }

    /// Opens an event channel on this machine.
    ///
    /// # Errors
    /// Those of [`open`](Self::open) and of
    /// [`ChannelOptions::open`](rdmacm_core::ChannelOptions::open).
    pub fn channel(&self) -> io::Result<EventChannel> {
        self.channel_options()?.open().map_err(io::Error::from)
    }

    /// The number of ids that exist on the machine, in all open files. It includes the ids
    /// of connect requests that were not read and those that are being destroyed, so a test
    /// finds ids that a program has not destroyed.
    #[must_use]
    pub fn id_count(&self) -> usize {
        self.with_state(|host| host.ids.len()).unwrap_or_default()
    }

    /// The objects of verbs that exist on the machine's devices.
    #[must_use]
    pub fn verbs_objects(&self) -> VerbsObjects {
        self.with_state(|host| {
            let mut objects = VerbsObjects::default();
            for device in &host.devices {
                device.verbs.count(&mut objects);
            }
            objects
        })
        .unwrap_or_default()
    }

    /// Takes the link of a device up or down. While it is down, no message leaves or
    /// reaches the device, no neighbour resolves its addresses, and the ports of an InfiniBand
    /// adapter are not active. Segments of iWARP connections arrive once it is up again: TCP
    /// sends them again, here without end. Open contexts of the device report the change as
    /// asynchronous events (`PORT_ERR`, `PORT_ACTIVE`); connections do not notice. Ignored if
    /// the machine has no such device.
    pub fn set_link_up(&self, device: &str, is_up: bool) {
        self.state.change(|state| {
            let Some(host) = state.hosts.get_mut(self.index) else {
                return;
            };
            let mut devices = host.devices.iter_mut();
            if let Some(device) = devices.find(|own| own.name == device && !own.is_removed) {
                device.set_link_up(is_up);
                state.subnet.set_link_up(&device.ports, is_up);
                tcp::resume(state);
            }
        });
    }

    /// Removes a device at once: its ids report `DEVICE_REMOVAL` and release their ports, their
    /// peers see the connections end, and every later command on them except for destroying
    /// them fails with `ENXIO`. Open contexts report `DEVICE_FATAL`, and their commands fail
    /// with `EIO`. The network interface stays: peers still resolve its address, and then nothing
    /// answers on RoCE, and TCP refuses on iWARP. Ignored if the machine has no such device.
    ///
    /// Drivers that disconnect open contexts behave in this way, as rxe does from Linux 7.3 on.
    /// siw, and rxe before, do not: their removal waits until all contexts of the device are
    /// closed, and reports nothing before. A program learns of it by the kernel's uevent, which is
    /// not simulated.
    pub fn remove_device(&self, device: &str) {
        self.state.change(|state| {
            let Some(host) = state.hosts.get(self.index) else {
                return;
            };
            let found = host
                .present_devices()
                .find(|(_, own)| own.name == device)
                .map(|(index, _)| index);
            if let Some(index) = found {
                destroy::device(state, self.index, index);
            }
        });
    }

    /// Makes the machine respond or not. One that does not respond still has its
    /// addresses, so that peers resolve them, but loses every message that it sends or
    /// receives: a machine that has crashed, while its peers remember its hardware
    /// address. Segments of iWARP connections, either way, arrive once it responds again: TCP
    /// sends them again, here without end.
    pub fn set_responding(&self, is_responding: bool) {
        self.state.change(|state| {
            if let Some(host) = state.hosts.get_mut(self.index) {
                host.is_responding = is_responding;
                tcp::resume(state);
            }
        });
    }

    /// Makes every message from or to this machine take this much longer.
    pub fn set_delay(&self, delay: Duration) {
        self.change(|host| host.delay = delay);
    }

    /// Loses the next `count` messages of this kind that the machine sends. The kernel
    /// sends most of them again. On iWARP, only messages of
    /// [`TcpHandshake`](MessageKind::TcpHandshake) are lost.
    pub fn drop_next(&self, kind: MessageKind, count: usize) {
        let host = self.index;
        let drop = Drop { host, kind, count };
        self.state.change(|state| {
            if count > 0 {
                state.network.drops.push(drop);
            }
        });
    }

    /// Makes the next `count` commands of this kind on the machine fail with this error
    /// number, without any effect. The command is one of the connection manager, by
    /// [`rdmacm_core::CommandNumber`], or of verbs, by [`rdmacm_verbs::CommandNumber`].
    ///
    /// A command of verbs that destroys an object takes effect before it fails with `EIO`, the
    /// error number of a device that is gone: a program may free the object's memory then.
    pub fn fail_next(&self, command: impl Into<KernelCommand>, count: usize, errno: i32) {
        let failure = CommandFailure {
            command: command.into(),
            count,
            errno,
        };
        self.change(|host| {
            if count > 0 {
                host.failures.push(failure);
            }
        });
    }

    /// Makes the next command of this kind on the machine wait, before it has any effect, until
    /// what this returns is dropped: so a test shows what happens in between. The command is as
    /// for [`fail_next`](Self::fail_next).
    pub fn hold_next(&self, command: impl Into<KernelCommand>) -> HeldCommand {
        let (hold, command) = Hold::new(command.into());
        self.change(|host| host.holds.push(hold));
        command
    }

    /// Adds a network interface without an RDMA device, which has this address. Binding
    /// to the address fails with `ENODEV`.
    pub fn add_non_rdma_interface(&self, address: IpAddr) {
        self.change(|host| host.non_rdma_addresses.insert(address));
    }

    /// Removes the host's route to this address: resolving it fails with `ENETUNREACH`. A
    /// host has a route to every other address of a family that it has an address of.
    pub fn remove_route(&self, destination: IpAddr) {
        self.change(|host| host.unroutable.insert(destination));
    }

    /// Lets another program of the machine use this TCP port, so that listening on it
    /// fails with `EADDRINUSE` on iWARP.
    pub fn occupy_tcp_port(&self, port: u16) {
        self.change(|host| host.tcp_ports.insert(port));
    }
}
