//! The ports of an RDMA device.

use super::link::{PhysicalState, PortState};
use crate::netlink::{Attributes, attribute};

/// One port of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Port {
    /// Its number, from 1.
    pub number: u32,
    /// The state of the logical link.
    pub state: PortState,
    /// The state of the physical link.
    pub physical_state: PhysicalState,
    /// The network interface of the port, on RoCE and iWARP.
    pub netdev: Option<Netdev>,
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Netdev {
    /// Its index in this network namespace; `None` if only sysfs was available.
    pub index: Option<u32>,
    /// Its name, such as `eth0`.
    pub name: String,
}

impl Port {
    pub(super) fn read(attributes: Attributes<'_>) -> Option<Self> {
        Some(Self {
            number: attributes.u32(attribute::PORT_INDEX)?,
            state: PortState(attributes.u8(attribute::PORT_STATE)?),
            physical_state: PhysicalState(attributes.u8(attribute::PORT_PHYS_STATE)?),
            netdev: attributes.string(attribute::NDEV_NAME).map(|name| Netdev {
                index: attributes.u32(attribute::NDEV_INDEX),
                name,
            }),
        })
    }
}
