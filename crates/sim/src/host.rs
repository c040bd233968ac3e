//! A machine on the fabric.

use std::io;
use std::sync::Arc;

use rdmacm_core::ucma::UcmaFile;
use rdmacm_core::{DeviceId, Error, InfinibandPort, RdmaDevice, RdmaDevices, Transport};

use crate::adapter::Adapter;
use crate::file::File;
use crate::inbox::Inbox;
use crate::machine::Machine;
use crate::readiness::Readiness;
use crate::release::Release;
use crate::world::Locked;

/// A machine with a kernel of its own, see [`Fabric::host`](crate::Fabric::host).
///
/// A clone is the same machine.
#[derive(Clone, Debug)]
pub struct Host {
    world: Arc<Locked>,
    index: usize,
}

impl Host {
    pub(crate) fn new(world: Arc<Locked>, index: usize) -> Self {
        Self { world, index }
    }

    /// The machine runs this kernel.
    #[must_use]
    pub fn release(self, release: Release) -> Self {
        self.world.change(|world| {
            if let Some(machine) = world.machines.get_mut(self.index) {
                machine.release = release;
            }
        });
        self
    }

    /// Opens the connection manager's device of this machine, for
    /// [`ChannelOptions::device`](rdmacm_core::ChannelOptions::ucma).
    ///
    /// # Errors
    /// That of `eventfd(2)`: the readiness descriptor is a real one.
    pub fn open(&self) -> io::Result<Arc<dyn UcmaFile>> {
        let readiness = Readiness::new()?;
        let eventfd = readiness.eventfd();
        let serial = self.world.change(|world| {
            let machine = world.machines.get_mut(self.index)?;
            let serial = machine.next_serial();
            machine.files.insert(serial, Inbox::new(readiness));
            Some(serial)
        });
        let serial = serial.ok_or(io::ErrorKind::NotFound)?;
        let world = Arc::clone(&self.world);
        Ok(Arc::new(File::new(world, self.index, serial, eventfd)))
    }

    fn of_machine<T>(&self, look: impl FnOnce(&Machine) -> T) -> Option<T> {
        let world = self.world.look();
        world.machines.get(self.index).map(look)
    }
}

/// The simulated RDMA devices of this machine, for
/// [`ChannelOptions::devices`](rdmacm_core::ChannelOptions::devices).
impl RdmaDevices for Host {
    fn look_up(&self, id: DeviceId) -> Option<RdmaDevice> {
        let index = usize::try_from(id.index?).ok()?;
        self.of_machine(|machine| {
            let adapter = machine.adapters.get(index)?;
            let is_it = adapter.guid == id.guid;
            is_it.then(|| RdmaDevice::new(id, &adapter.name, Transport::InfiniBand))
        })?
    }

    fn list(&self) -> Result<Vec<RdmaDevice>, Error> {
        let devices = self.of_machine(|machine| {
            let indexed = (0..).zip(&machine.adapters);
            let device = |(index, adapter): (u32, &Adapter)| {
                let id = DeviceId {
                    index: Some(index),
                    guid: adapter.guid,
                };
                RdmaDevice::new(id, &adapter.name, Transport::InfiniBand)
            };
            indexed.map(device).collect()
        });
        Ok(devices.unwrap_or_default())
    }

    fn infiniband_ports(&self) -> Result<Vec<InfinibandPort>, Error> {
        let ports = self.of_machine(|machine| {
            let mut ports = Vec::new();
            for adapter in &machine.adapters {
                for (number, port) in adapter.numbered().filter(|(_, port)| port.is_active) {
                    let first = port.gids.first().copied();
                    ports.extend(
                        first.map(|gid| InfinibandPort::new(&adapter.name, number.into(), gid)),
                    );
                }
            }
            ports
        });
        Ok(ports.unwrap_or_default())
    }
}
