//! Device ids.

use std::io;

use super::RdmaDevice;
use super::sysfs::Sysfs;
use crate::guid::Guid;
use crate::netlink::{DEVICE_GET, RdmaNetlink, Value, attribute};

/// The device an id is bound to, as the kernel's answers name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceId {
    /// The kernel's index of the device; `None` on kernels before 5.8, which return the
    /// GUID only.
    pub index: Option<u32>,
    /// The GUID of the node.
    #[doc(alias = "node_guid")]
    pub guid: Guid,
}

impl DeviceId {
    /// The device with this index, with its name and transport, by one netlink request.
    /// If only sysfs is available, the device with this GUID. `None` if the device is
    /// gone, or if two devices have the GUID.
    #[must_use]
    pub fn look_up(self) -> Option<RdmaDevice> {
        self.by_netlink()
            .unwrap_or_else(|_| Sysfs::new().device_of(self.guid))
    }

    /// `Err` if netlink is not available, `Ok(None)` if it has no such device: a device
    /// that is gone must not be confused with another one with the same GUID.
    fn by_netlink(self) -> io::Result<Option<RdmaDevice>> {
        let index = self.index.ok_or(io::ErrorKind::NotFound)?;
        let key = [(attribute::DEV_INDEX, Value::Number(index))];
        let device = RdmaNetlink::open()?.get(DEVICE_GET, &key, RdmaDevice::read)?;
        Ok(device.filter(|device| device.guid == self.guid))
    }
}
