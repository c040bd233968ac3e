//! Verbs nodes.

use std::io;
use std::path::PathBuf;

use rdmacm_abi::uverbs::DriverId;

use crate::netlink::{Attributes, CHARDEV_GET, RdmaNetlink, Value, attribute};

/// The verbs node of a device, `/dev/infiniband/uverbsN`, as the kernel
/// describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UverbsNode {
    /// Its name, such as `uverbs0`.
    pub name: String,
    /// Its number as `st_rdev` of `stat(2)` has it.
    #[doc(alias = "st_rdev")]
    pub number: u64,
    /// The version of the driver's part of the ABI.
    pub abi_version: u32,
    /// Its driver; [`DriverId::UNKNOWN`] if neither netlink nor sysfs reports it.
    pub driver: DriverId,
}

impl UverbsNode {
    /// The path at which udev creates it.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        ["/dev/infiniband", &self.name].iter().collect()
    }

    /// `Err` if netlink is not available, `Ok(None)` if the device has no node.
    pub(super) fn by_netlink(index: u32) -> io::Result<Option<Self>> {
        let key = [
            (attribute::DEV_INDEX, Value::Number(index)),
            (attribute::CHARDEV_TYPE, Value::Text("uverbs")),
        ];
        match RdmaNetlink::open()?.get(CHARDEV_GET, &key, Self::read) {
            // The kernel has no module ib_uverbs.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
            answer => answer,
        }
    }

    fn read(attributes: Attributes<'_>) -> Option<Self> {
        let (mut name, mut number, mut abi_version, mut driver) = (None, None, None, None);
        for (kind, value) in attributes {
            match kind {
                attribute::CHARDEV_NAME => name = value.text(),
                attribute::CHARDEV => number = value.u64(),
                attribute::CHARDEV_ABI => abi_version = value.u64(),
                attribute::UVERBS_DRIVER_ID => driver = value.u32(),
                _ => {}
            }
        }
        Some(Self {
            name: name?.to_owned(),
            number: number?,
            abi_version: abi_version?.try_into().ok()?,
            driver: driver.map_or(DriverId::UNKNOWN, DriverId::new),
        })
    }
}
