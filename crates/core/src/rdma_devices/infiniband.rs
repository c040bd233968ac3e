//! Ports of InfiniBand subnets.

use super::sysfs::Sysfs;
use crate::error::{Error, Result};
use crate::gid::Gid;

/// An active port with the link layer InfiniBand, whose subnet has an administrator.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InfinibandPort {
    /// The device's name, such as `mlx5_0`.
    pub device: String,
    /// The port's number, from 1.
    pub number: u32,
    /// The port's first GID, to which an id is bound.
    pub gid: Gid,
}

impl InfinibandPort {
    /// A port, for an implementation of [`RdmaDevices`](crate::RdmaDevices).
    #[must_use]
    pub fn new(device: impl Into<String>, number: u32, gid: Gid) -> Self {
        Self {
            device: device.into(),
            number,
            gid,
        }
    }

    /// Every such port visible to this process, by device and number. Includes the ports
    /// of Omni-Path. Reads sysfs, because netlink has neither link layers nor GIDs.
    ///
    /// # Errors
    /// [`Error::Devices`] if sysfs cannot be read. A machine without RDMA has an empty
    /// list.
    pub fn list() -> Result<Vec<Self>> {
        Sysfs::new().infiniband_ports().map_err(Error::devices)
    }
}
