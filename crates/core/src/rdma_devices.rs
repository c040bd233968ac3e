//! The RDMA devices of this machine.
//!
//! The kernel's answers about an id name its device by an index, which only netlink
//! translates to a name. If netlink is not available (a seccomp filter, an old kernel),
//! sysfs replaces it in part: it has names and GUIDs but no indices, and the GUIDs of soft
//! devices are not unique.

use std::io;

use crate::error::{Error, Result};
use crate::guid::Guid;
use crate::netlink::{Attributes, PORT_GET, RdmaNetlink, Value, attribute};

mod id;
mod infiniband;
mod link;
mod lookup;
mod port;
mod source;
mod sysfs;
mod transport;
mod uverbs;

use sysfs::Sysfs;

pub use id::DeviceId;
pub use infiniband::InfinibandPort;
pub use link::{PhysicalState, PortState};
pub use lookup::DeviceLookup;
pub use port::{Netdev, Port};
pub use source::{RdmaDevices, SystemDevices};
pub use transport::Transport;
pub use uverbs::UverbsNode;

/// One RDMA device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RdmaDevice {
    /// The kernel's index; `None` if only sysfs was available.
    pub index: Option<u32>,
    /// Its name, such as `mlx5_0` or `rxe0`.
    pub name: String,
    /// The GUID of the node; soft devices on one network interface share it.
    pub guid: Guid,
    /// The device's transport.
    pub transport: Transport,
}

impl RdmaDevice {
    /// A device, for an implementation of [`RdmaDevices`].
    #[must_use]
    pub fn new(id: DeviceId, name: impl Into<String>, transport: Transport) -> Self {
        Self {
            index: id.index,
            name: name.into(),
            guid: id.guid,
            transport,
        }
    }

    /// What the kernel names the device by, as in the addresses of an id.
    #[must_use]
    pub fn id(&self) -> DeviceId {
        DeviceId {
            index: self.index,
            guid: self.guid,
        }
    }

    /// Every device visible to this process, in the kernel's order.
    ///
    /// # Errors
    /// [`Error::Devices`] if neither netlink nor sysfs is available. A machine without
    /// RDMA has an empty list.
    #[doc(alias = "rdma_get_devices", alias = "rdma_free_devices")]
    #[doc(alias = "ibv_get_device_list", alias = "ibv_free_device_list")]
    pub fn list() -> Result<Vec<Self>> {
        Self::list_by_netlink().or_else(|_| Sysfs::new().devices().map_err(Error::devices))
    }

    fn list_by_netlink() -> io::Result<Vec<Self>> {
        RdmaNetlink::open()?.devices(Self::read)
    }

    fn read(attributes: Attributes<'_>) -> Option<Self> {
        let (mut index, mut name, mut guid, mut protocol) = (None, None, None, None);
        for (kind, value) in attributes {
            match kind {
                attribute::DEV_INDEX => index = value.u32(),
                attribute::DEV_NAME => name = value.text(),
                attribute::NODE_GUID => guid = value.u64(),
                attribute::DEV_PROTOCOL => protocol = Some(value.bytes()),
                _ => {}
            }
        }
        Some(Self {
            index: Some(index?),
            name: name?.to_owned(),
            // Netlink has it in host order, unlike the answers about ids.
            guid: Guid(guid?),
            transport: Transport::from_protocol(protocol),
        })
    }

    /// The device's ports, by number.
    ///
    /// # Errors
    /// [`Error::Devices`] if the kernel refuses, with `EINVAL` for a device that is gone.
    pub fn ports(&self) -> Result<Vec<Port>> {
        match self.index {
            Some(index) => Self::ports_by_netlink(index),
            None => Sysfs::new().ports(&self.name),
        }
        .map_err(Error::devices)
    }

    /// The network interface of an entry of a port's GID table, on RoCE: that of the port, or one
    /// on top of it, such as a VLAN. Ports are numbered from 1, entries from 0. Source: `gid_attrs`
    /// of sysfs.
    ///
    /// # Errors
    /// [`Error::Devices`]: the entry has none, or is not there.
    #[doc(alias = "ibv_query_gid_ex", alias = "ndev_ifindex")]
    pub fn gid_netdev(&self, port: u8, index: u32) -> Result<Netdev> {
        let netdev = Sysfs::new().gid_netdev(&self.name, port, index);
        netdev.map_err(Error::devices)
    }

    /// Whether an entry of a port's GID table is of RoCE version 1, or of InfiniBand, which sysfs
    /// does not distinguish. Ports are numbered from 1, entries from 0. Source: `gid_attrs` of
    /// sysfs.
    ///
    /// # Errors
    /// [`Error::Devices`]: the entry is not there.
    #[doc(alias = "ibv_query_gid_ex", alias = "IBV_GID_TYPE_ROCE_V1")]
    pub fn is_roce_v1(&self, port: u8, index: u32) -> Result<bool> {
        let is_v1 = Sysfs::new().is_roce_v1(&self.name, port, index);
        is_v1.map_err(Error::devices)
    }

    /// The device's verbs node, on which queue pairs are created; `None` if it has none.
    /// One netlink request, which also makes the kernel load the module `ib_uverbs`. Before
    /// Linux 5.3, and without netlink, sysfs is asked, which does not load it.
    ///
    /// # Errors
    /// [`Error::Devices`] if the kernel refuses.
    #[doc(alias = "ibv_open_device")]
    pub fn uverbs_node(&self) -> Result<Option<UverbsNode>> {
        let sysfs = |device: &Self| Sysfs::new().uverbs_node(device).map_err(Error::devices);
        match self.index.map(UverbsNode::by_netlink) {
            Some(Ok(Some(node))) => Ok(Some(node)),
            // Linux before 5.3 does not know the request, and answers as for a device that is
            // gone. Sysfs knows the node of one that is still there, by its present name.
            Some(Ok(None)) => {
                let present = self.id().look_up();
                present.map_or(Ok(None), |device| sysfs(&device))
            }
            // Netlink is not available.
            Some(Err(_)) | None => sysfs(self),
        }
    }

    fn ports_by_netlink(index: u32) -> io::Result<Vec<Port>> {
        let key = [(attribute::DEV_INDEX, Value::Number(index))];
        RdmaNetlink::open()?.dump(PORT_GET, &key, Port::read)
    }
}
