//! The source address of a connection.

use rdmacm_addrinfo::interface_addresses;
use rdmacm_core::{CmAddr, Family, RdmaDevice};

use crate::error::Cause;

/// How the source address of a connection is chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum SourceAddress {
    /// By the kernel's routes.
    #[default]
    ByRoute,
    /// An address of this host. The kernel chooses the port if it is 0.
    Address(CmAddr),
    /// The first address of a network interface, by name.
    Interface(String),
    /// The first address of an RDMA device, by name.
    Device(String),
}

impl SourceAddress {
    /// The source address of this family; `None` to leave it to the kernel.
    pub(crate) fn address(&self, family: Family) -> Result<Option<CmAddr>, Cause> {
        match self {
            Self::ByRoute => Ok(None),
            Self::Address(address) if address.family() == family => Ok(Some(*address)),
            Self::Address(_) => Err(Cause::NoAddress),
            Self::Interface(name) => on_interface(name, family)
                .map(Some)
                .ok_or_else(|| Cause::NoSourceAddress(name.clone())),
            Self::Device(name) => interfaces(name)?
                .iter()
                .find_map(|interface| on_interface(interface, family))
                .map(Some)
                .ok_or_else(|| Cause::NoSourceAddress(name.clone())),
        }
    }
}

/// The network interfaces of an RDMA device's ports.
fn interfaces(device: &str) -> Result<Vec<String>, Cause> {
    let devices = RdmaDevice::list()?;
    let Some(device) = devices.iter().find(|one| one.name == device) else {
        return Err(Cause::NoSourceAddress(device.to_owned()));
    };
    let ports = device.ports()?;
    let netdevs = ports.into_iter().filter_map(|port| port.netdev);
    Ok(netdevs.map(|netdev| netdev.name).collect())
}

/// The interface's first address of the family, with global scope if there is one.
fn on_interface(name: &str, family: Family) -> Option<CmAddr> {
    let all = interface_addresses().ok()?;
    let of_interface = all.into_iter().filter(|one| one.interface == name);
    let mut of_family: Vec<_> = of_interface
        .map(|one| CmAddr::from(one.address))
        .filter(|address| address.family() == family)
        .collect();
    // A stable sort keeps the kernel's order otherwise.
    of_family.sort_by_key(CmAddr::is_link_local);
    of_family.into_iter().next()
}
