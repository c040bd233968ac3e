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
        let (mut number, mut state, mut physical_state) = (None, None, None);
        let (mut netdev_index, mut netdev_name) = (None, None);
        for (kind, value) in attributes {
            match kind {
                attribute::PORT_INDEX => number = value.u32(),
                attribute::PORT_STATE => state = value.u8(),
                attribute::PORT_PHYS_STATE => physical_state = value.u8(),
                attribute::NDEV_INDEX => netdev_index = value.u32(),
                attribute::NDEV_NAME => netdev_name = value.text(),
                _ => {}
            }
        }
        Some(Self {
            number: number?,
            state: PortState(state?),
            physical_state: PhysicalState(physical_state?),
            netdev: netdev_name.map(|name| Netdev {
                index: netdev_index,
                name: name.to_owned(),
            }),
        })
    }
}
