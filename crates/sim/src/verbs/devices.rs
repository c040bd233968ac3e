//! Where contexts of simulated devices come from.

use rdmacm_abi::uverbs::{DriverId, rxe};
use rdmacm_core::{DeviceId, RdmaDevices, Transport};
use rdmacm_verbs::{Context, DeviceSource, Error, Result};

use super::file::SimVerbsFile;
use crate::host::Host;

/// Opens the RoCE devices of this host. Other devices have no queue pairs.
impl DeviceSource for Host {
    /// # Errors
    /// [`Error::NoNode`] if the host has no such RoCE device, or no descriptor is to be
    /// had.
    fn open(&self, id: DeviceId) -> Result<Context> {
        let no_node = || Error::NoNode {
            device: id.guid.to_string(),
        };
        let device = self.look_up(id).ok_or_else(no_node)?;
        let index = id.index.and_then(|index| usize::try_from(index).ok());
        let index = index.ok_or_else(no_node)?;
        if device.transport != Transport::RoCE {
            return Err(no_node());
        }
        let file = SimVerbsFile::open(self.state(), self.index(), index);
        let file = file.map_err(|_| no_node())?;
        Context::with_file(
            &device.name,
            Box::new(file),
            DriverId::RXE,
            rxe::ABI_VERSION,
        )
    }
}
