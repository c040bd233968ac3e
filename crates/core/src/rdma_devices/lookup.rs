//! Looking up devices after a channel has named them.

use std::sync::Arc;

use super::{DeviceId, RdmaDevice, RdmaDevices};

/// Looks up the devices that a channel's answers name, whenever a name is needed, also after
/// the channel is gone. It keeps nothing open, and sees the devices of the calling thread's
/// network namespace. See [`EventChannel::device_lookup`](crate::EventChannel::device_lookup).
#[derive(Clone, Debug)]
pub struct DeviceLookup {
    /// `None` for those of this machine.
    devices: Option<Arc<dyn RdmaDevices>>,
}

impl DeviceLookup {
    pub(crate) fn new(devices: Option<Arc<dyn RdmaDevices>>) -> Self {
        Self { devices }
    }

    /// The RDMA device that the kernel names by this id; `None` if it is unknown or
    /// ambiguous. See [`DeviceId::look_up`].
    #[must_use]
    pub fn look_up(&self, id: DeviceId) -> Option<RdmaDevice> {
        match &self.devices {
            Some(devices) => devices.look_up(id),
            None => id.look_up(),
        }
    }
}
