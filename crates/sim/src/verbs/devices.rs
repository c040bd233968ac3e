//! Where contexts of simulated devices come from.

use rdmacm_core::{DeviceId, RdmaDevices};
use rdmacm_verbs::{Context, DeviceSource, Error, Result};

use super::file::SimVerbsFile;
use super::format::Format;
use crate::host::Host;

/// Opens the RoCE and iWARP devices of this host. InfiniBand adapters have no queue pairs.
impl DeviceSource for Host {
    /// # Errors
    /// [`Error::NoNode`] if the host has no such device with queue pairs, or no descriptor is
    /// to be had.
    fn open(&self, id: DeviceId) -> Result<Context> {
        let no_node = || Error::NoNode {
            device: id.guid.to_string(),
        };
        let device = self.look_up(id).ok_or_else(no_node)?;
        let index = id.index.and_then(|index| usize::try_from(index).ok());
        let index = index.ok_or_else(no_node)?;
        let format = Format::of(device.transport).ok_or_else(no_node)?;
        let file = SimVerbsFile::open(self.state(), self.index(), index);
        let file = file.map_err(|_| no_node())?;
        let (driver, version) = format.driver();
        Context::with_file(&device.name, Box::new(file), driver, version)
    }
}
