//! Where contexts come from.

use std::fmt;

use rdmacm_core::DeviceId;

use crate::context::Context;
use crate::error::Result;

/// Opens the devices that ids are attached to: those of this host, or simulated ones.
pub trait DeviceSource: fmt::Debug + Send + Sync {
    /// Opens a device.
    ///
    /// # Errors
    /// Those of [`Context::open_by_id`].
    fn open(&self, id: DeviceId) -> Result<Context>;
}

/// The devices of this host.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDeviceSource;

impl DeviceSource for SystemDeviceSource {
    fn open(&self, id: DeviceId) -> Result<Context> {
        Context::open_by_id(id)
    }
}
