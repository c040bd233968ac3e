//! Ports of InfiniBand subnets.

use super::sysfs::Sysfs;
use crate::error::{Error, Result};
use crate::gid::Gid;

/// An active port with the link layer InfiniBand, whose subnet administrator
/// can be asked.
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
    /// A port that something other than the kernel tells of.
    #[must_use]
    pub fn new(device: impl Into<String>, number: u32, gid: Gid) -> Self {
        Self {
            device: device.into(),
            number,
            gid,
        }
    }

    /// Every such port this process may see, by device and number, as sysfs
    /// tells: netlink knows neither link layers nor GIDs. Omni-Path's ports are
    /// among them.
    ///
    /// # Errors
    /// [`Error::Devices`] when sysfs cannot be read. A machine without RDMA gives
    /// an empty list.
    pub fn list() -> Result<Vec<Self>> {
        Sysfs::new().infiniband_ports().map_err(Error::devices)
    }
}
