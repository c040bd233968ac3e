//! The RDMA devices of this machine, as far as a name or a list is asked for.
//!
//! The kernel's answers about an id name its device by an index, and only
//! netlink knows which name belongs to an index. Where netlink is not to be had
//! (a seccomp filter, a kernel without it) sysfs stands in as far as it goes: it
//! knows names and GUIDs but no indices, and GUIDs of soft devices repeat.

use std::io;

use crate::error::{Error, Result};
use crate::guid::Guid;
use crate::netlink::{Attributes, DEVICE_GET, PORT_GET, RdmaNetlink, Value, attribute};

mod id;
mod infiniband;
mod link;
mod port;
mod source;
mod sysfs;
mod transport;
mod uverbs;

use sysfs::Sysfs;

pub use id::DeviceId;
pub use infiniband::InfinibandPort;
pub use link::{PhysicalState, PortState};
pub use port::{Netdev, Port};
pub use source::{RdmaDevices, SystemDevices};
pub use transport::Transport;
pub use uverbs::UverbsNode;

/// One RDMA device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RdmaDevice {
    /// The kernel's index; `None` where only sysfs could be asked.
    pub index: Option<u32>,
    /// Its name, such as `mlx5_0` or `rxe0`.
    pub name: String,
    /// The node's GUID; soft devices on one network interface share it.
    pub guid: Guid,
    /// The protocol it speaks.
    pub transport: Transport,
}

impl RdmaDevice {
    /// A device that something other than the kernel tells of.
    #[must_use]
    pub fn new(id: DeviceId, name: impl Into<String>, transport: Transport) -> Self {
        Self {
            index: id.index,
            name: name.into(),
            guid: id.guid,
            transport,
        }
    }

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
        RdmaNetlink::open()?.dump(DEVICE_GET, &[], Self::read)
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
    /// [`Error::Devices`] when the kernel refuses, with `EINVAL` for a device that
    /// is gone.
    pub fn ports(&self) -> Result<Vec<Port>> {
        match self.index {
            Some(index) => Self::ports_by_netlink(index),
            None => Sysfs::new().ports(&self.name),
        }
        .map_err(Error::devices)
    }

    /// The device's verbs node, by which its queue pairs are made; `None` where
    /// it has none. One question, which also makes the kernel load `ib_uverbs`
    /// if that is a module.
    ///
    /// # Errors
    /// [`Error::Devices`] when the kernel refuses.
    #[doc(alias = "ibv_open_device")]
    pub fn uverbs_node(&self) -> Result<Option<UverbsNode>> {
        match self.index.map(UverbsNode::by_netlink) {
            Some(Ok(node)) => Ok(node),
            // Where netlink cannot be asked.
            Some(Err(_)) | None => Sysfs::new().uverbs_node(self).map_err(Error::devices),
        }
    }

    fn ports_by_netlink(index: u32) -> io::Result<Vec<Port>> {
        let key = [(attribute::DEV_INDEX, Value::Number(index))];
        RdmaNetlink::open()?.dump(PORT_GET, &key, Port::read)
    }
}
