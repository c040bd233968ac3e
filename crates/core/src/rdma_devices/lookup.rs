//! Looking up several devices.

use super::{DeviceId, RdmaDevice, RdmaDevices};
use crate::netlink::RdmaNetlink;

/// Looks up the devices that a channel's answers name, one after the other, by one netlink
/// socket. See [`EventChannel::device_lookup`](crate::EventChannel::device_lookup).
///
/// It sees the devices of the network namespace of the thread that looks up first.
#[derive(Debug)]
pub struct DeviceLookup<'channel> {
    /// `None` for those of this machine.
    devices: Option<&'channel dyn RdmaDevices>,
    netlink: Option<RdmaNetlink>,
}

impl<'channel> DeviceLookup<'channel> {
    pub(crate) fn new(devices: Option<&'channel dyn RdmaDevices>) -> Self {
        let netlink = None;
        Self { devices, netlink }
    }

    /// The RDMA device that the kernel names by this id; `None` if it is unknown or
    /// ambiguous. See [`DeviceId::look_up`].
    pub fn look_up(&mut self, id: DeviceId) -> Option<RdmaDevice> {
        match self.devices {
            Some(devices) => devices.look_up(id),
            None => id.look_up_on(&mut self.netlink),
        }
    }
}
