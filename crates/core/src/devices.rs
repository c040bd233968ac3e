//! The RDMA devices of this machine, as far as a name or a list is asked for.
//!
//! The kernel's answers about an id name its device by an index, and only
//! netlink knows which name belongs to an index. Where netlink is not to be had
//! (a seccomp filter, a kernel without it) sysfs stands in as far as it goes: it
//! knows names and GUIDs but no indices, and GUIDs of soft devices repeat.

use std::fmt;
use std::io;

use crate::error::{Error, Result};
use crate::gid::Guid;
use crate::netlink::{Attributes, DEVICE_GET, PORT_GET, RdmaNetlink, attribute};

mod port;
mod sysfs;

use sysfs::Sysfs;

pub use port::{Netdev, PhysicalState, Port, PortState};

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
    pub fn look_up(self) -> Option<Device> {
        self.by_netlink()
            .unwrap_or_else(|_| Sysfs::new().device_of(self.guid))
    }

    /// `Err` means that netlink cannot tell, `Ok(None)` that it knows of no
    /// such device.
    fn by_netlink(self) -> io::Result<Option<Device>> {
        let index = self.index.ok_or(io::ErrorKind::NotFound)?;
        let key = [(attribute::DEV_INDEX, index)];
        match RdmaNetlink::open()?.get(DEVICE_GET, &key, Device::read) {
            Ok(device) => Ok(device.filter(|device| device.guid == self.guid)),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// One RDMA device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Device {
    /// The kernel's index; `None` where only sysfs could be asked.
    pub index: Option<u32>,
    /// Its name, such as `mlx5_0` or `rxe0`.
    pub name: String,
    /// The node's GUID; soft devices on one network interface share it.
    pub guid: Guid,
    /// The protocol it speaks.
    pub transport: Transport,
}

impl Device {
    /// Every device this process may see, in the kernel's order.
    ///
    /// # Errors
    /// [`Error::Devices`] when the kernel refuses both netlink and sysfs. A
    /// machine without RDMA gives an empty list.
    #[doc(alias = "rdma_get_devices")]
    #[doc(alias = "ibv_get_device_list")]
    pub fn list() -> Result<Vec<Self>> {
        Self::list_by_netlink().or_else(|_| Sysfs::new().devices().map_err(Error::devices))
    }

    fn list_by_netlink() -> io::Result<Vec<Self>> {
        let mut devices = Vec::new();
        RdmaNetlink::open()?.dump(DEVICE_GET, &[], |attributes| {
            devices.extend(Self::read(attributes));
        })?;
        Ok(devices)
    }

    fn read(attributes: Attributes<'_>) -> Option<Self> {
        Some(Self {
            index: Some(attributes.u32(attribute::DEV_INDEX)?),
            name: attributes.string(attribute::DEV_NAME)?,
            // Unlike the answers about ids, netlink gives it in host order.
            guid: Guid(attributes.u64(attribute::NODE_GUID)?),
            transport: Transport::from_protocol(
                attributes.string(attribute::DEV_PROTOCOL).as_deref(),
            ),
        })
    }

    /// The device's ports, by number.
    ///
    /// # Errors
    /// [`Error::Devices`] when the device is gone or the kernel refuses.
    pub fn ports(&self) -> Result<Vec<Port>> {
        match self.index {
            Some(index) => Self::ports_by_netlink(index),
            None => Sysfs::new().ports(&self.name),
        }
        .map_err(Error::devices)
    }

    fn ports_by_netlink(index: u32) -> io::Result<Vec<Port>> {
        let mut ports = Vec::new();
        let key = [(attribute::DEV_INDEX, index)];
        RdmaNetlink::open()?.dump(PORT_GET, &key, |attributes| {
            ports.extend(Port::read(attributes));
        })?;
        Ok(ports)
    }
}

/// The protocol a device speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transport {
    /// InfiniBand.
    InfiniBand,
    /// Omni-Path.
    OmniPath,
    /// RDMA over Converged Ethernet.
    RoCE,
    /// Internet Wide Area RDMA Protocol.
    IWarp,
    /// Cisco usNIC.
    UsNic,
    /// One that this library does not know, or that the kernel did not tell.
    Unknown,
}

impl Transport {
    fn from_protocol(protocol: Option<&str>) -> Self {
        match protocol {
            Some("ib") => Self::InfiniBand,
            Some("opa") => Self::OmniPath,
            Some("roce") => Self::RoCE,
            Some("iw") => Self::IWarp,
            Some("usnic") => Self::UsNic,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InfiniBand => "InfiniBand",
            Self::OmniPath => "Omni-Path",
            Self::RoCE => "RoCE",
            Self::IWarp => "iWARP",
            Self::UsNic => "usNIC",
            Self::Unknown => "unknown",
        })
    }
}
