//! The device an id is attached to.

use std::io;

use super::RdmaDevice;
use super::sysfs::Sysfs;
use crate::guid::Guid;
use crate::netlink::{DEVICE_GET, RdmaNetlink, Value, attribute};

/// The device an id is attached to, as the kernel names it in its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceId {
    /// The kernel's index of the device; `None` on kernels before 5.8, which
    /// give the GUID only.
    pub index: Option<u32>,
    /// The node's GUID.
    #[doc(alias = "node_guid")]
    pub guid: Guid,
}

impl DeviceId {
    /// The device of this index, with its name and transport: one question by
    /// netlink; no device is opened and no other one is looked at. Where only
    /// sysfs can be asked it is the one device with this GUID. `None` where
    /// nothing tells without doubt.
    #[must_use]
    pub fn look_up(self) -> Option<RdmaDevice> {
        self.by_netlink()
            .unwrap_or_else(|_| Sysfs::new().device_of(self.guid))
    }

    /// `Err` means that netlink cannot be asked, `Ok(None)` that it knows of no
    /// such device: one that is gone must not be taken for another with the
    /// same GUID.
    fn by_netlink(self) -> io::Result<Option<RdmaDevice>> {
        let index = self.index.ok_or(io::ErrorKind::NotFound)?;
        let key = [(attribute::DEV_INDEX, Value::Number(index))];
        let device = RdmaNetlink::open()?.get(DEVICE_GET, &key, RdmaDevice::read)?;
        Ok(device.filter(|device| device.guid == self.guid))
    }
}
