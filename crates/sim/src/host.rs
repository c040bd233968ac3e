//! A machine on the fabric.

use std::io;
use std::sync::Arc;

use rdmacm_core::device::Device;

use crate::file::File;
use crate::inbox::Inbox;
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
    /// [`ChannelOptions::device`](rdmacm_core::ChannelOptions::device).
    ///
    /// # Errors
    /// That of `eventfd(2)`: the readiness descriptor is a real one.
    pub fn open(&self) -> io::Result<Arc<dyn Device>> {
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
}
