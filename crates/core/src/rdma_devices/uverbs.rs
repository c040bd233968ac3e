//! Where the verbs of a device are spoken.

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
    /// The version of what its driver says besides the kernel's own words.
    pub abi_version: u32,
    /// Its driver; [`DriverId::UNKNOWN`] where nothing tells.
    pub driver: DriverId,
}

impl UverbsNode {
    /// Where udev puts it.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        ["/dev/infiniband", &self.name].iter().collect()
    }

    /// `Err` means that netlink cannot be asked, `Ok(None)` that it knows of
    /// none.
    pub(super) fn by_netlink(index: u32) -> io::Result<Option<Self>> {
        let key = [
            (attribute::DEV_INDEX, Value::Number(index)),
            (attribute::CHARDEV_TYPE, Value::Text("uverbs")),
        ];
        match RdmaNetlink::open()?.get(CHARDEV_GET, &key, Self::read) {
            // Without the module ib_uverbs, and none to load.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
            answer => answer,
        }
    }

    fn read(attributes: Attributes<'_>) -> Option<Self> {
        let driver = attributes.u32(attribute::UVERBS_DRIVER_ID);
        Some(Self {
            name: attributes.string(attribute::CHARDEV_NAME)?,
            number: attributes.u64(attribute::CHARDEV)?,
            abi_version: attributes.u64(attribute::CHARDEV_ABI)?.try_into().ok()?,
            driver: driver.map_or(DriverId::UNKNOWN, DriverId::new),
        })
    }
}
