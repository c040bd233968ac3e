//! Where a connection starts from.

use rdmacm_addrinfo::interface_addresses;
use rdmacm_core::{CmAddr, Family, RdmaDevice};

use crate::error::Cause;

/// Where a connection starts from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Source {
    /// Where the kernel's routes say.
    #[default]
    Routes,
    /// An address of this machine; port 0 for one of the kernel's choice.
    Address(CmAddr),
    /// A network interface, by name.
    Interface(String),
    /// An RDMA device, by name.
    Device(String),
}

impl Source {
    /// The address to start from, of a family.
    pub(crate) fn address(&self, family: Family) -> Result<Option<CmAddr>, Cause> {
        match self {
            Self::Routes => Ok(None),
            Self::Address(address) if address.family() == family => Ok(Some(*address)),
            Self::Address(_) => Err(Cause::NoAddress),
            Self::Interface(name) => on_interface(name, family)
                .map(Some)
                .ok_or_else(|| Cause::Source(name.clone())),
            Self::Device(name) => interfaces(name)?
                .iter()
                .find_map(|interface| on_interface(interface, family))
                .map(Some)
                .ok_or_else(|| Cause::Source(name.clone())),
        }
    }
}

/// The interfaces an RDMA device's ports are on.
fn interfaces(device: &str) -> Result<Vec<String>, Cause> {
    let devices = RdmaDevice::list()?;
    let Some(device) = devices.iter().find(|one| one.name == device) else {
        return Err(Cause::Source(device.to_owned()));
    };
    let ports = device.ports()?;
    let netdevs = ports.into_iter().filter_map(|port| port.netdev);
    Ok(netdevs.map(|netdev| netdev.name).collect())
}

/// The interface's first address of the family that needs no scope, or else a
/// link-local one with its scope.
fn on_interface(name: &str, family: Family) -> Option<CmAddr> {
    let all = interface_addresses().ok()?;
    let of_interface = all.into_iter().filter(|one| one.interface == name);
    let mut of_family: Vec<_> = of_interface
        .map(|one| CmAddr::from(one.address))
        .filter(|address| address.family() == family)
        .collect();
    // Stable: otherwise in the kernel's order.
    of_family.sort_by_key(CmAddr::is_link_local);
    of_family.into_iter().next()
}
