//! Where a channel looks up RDMA devices.

use std::fmt;
use std::net::IpAddr;

use super::{DeviceId, InfinibandPort, RdmaDevice};
use crate::error::Result;

/// The RDMA devices that a channel can name: those of this machine
/// ([`SystemDevices`]), or those that a stand-in for the kernel simulates.
///
/// A test that passes its own [`UcmaFile`](crate::ucma::UcmaFile) passes the
/// devices that belong to it to
/// [`ChannelOptions::devices`](crate::ChannelOptions::devices).
pub trait RdmaDevices: fmt::Debug + Send + Sync {
    /// The device that the kernel names by this id; `None` if it is unknown or
    /// ambiguous. See [`DeviceId::look_up`].
    fn look_up(&self, id: DeviceId) -> Option<RdmaDevice>;

    /// All devices. See [`RdmaDevice::list`].
    ///
    /// # Errors
    /// Those of [`RdmaDevice::list`].
    fn list(&self) -> Result<Vec<RdmaDevice>>;

    /// The active InfiniBand ports of all devices. See [`InfinibandPort::list`].
    ///
    /// # Errors
    /// Those of [`InfinibandPort::list`].
    fn infiniband_ports(&self) -> Result<Vec<InfinibandPort>>;

    /// The IP addresses of the simulated host that has these devices; `None`, which is the
    /// default, if they are this machine's.
    fn host_addresses(&self) -> Option<Vec<IpAddr>> {
        None
    }
}

/// The RDMA devices of this machine, by RDMA netlink and sysfs. What a channel
/// uses unless it is given others.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDevices;

impl RdmaDevices for SystemDevices {
    fn look_up(&self, id: DeviceId) -> Option<RdmaDevice> {
        id.look_up()
    }

    fn list(&self) -> Result<Vec<RdmaDevice>> {
        RdmaDevice::list()
    }

    fn infiniband_ports(&self) -> Result<Vec<InfinibandPort>> {
        InfinibandPort::list()
    }
}
