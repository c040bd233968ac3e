//! The addresses of this machine.

use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::{Interface, if_nameindex};
use rdmacm_core::{CmAddr, RdmaDevice};

use crate::error::{Error, NameError, Result};
use crate::names::parse_numeric;

/// An address of one of this machine's network interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalAddress {
    /// The interface's name.
    pub interface: String,
    /// The address, with port 0; a link-local one with its scope.
    pub address: SocketAddr,
}

/// Every IP address of this machine's network interfaces, in the kernel's order,
/// those included that no RDMA device serves. Source: `getifaddrs(3)`.
///
/// # Errors
/// [`Error::Interfaces`] if the kernel reports an error.
pub fn interface_addresses() -> Result<Vec<LocalAddress>> {
    let all = getifaddrs().map_err(|errno| Error::Interfaces(errno as i32))?;
    Ok(all.filter_map(|one| LocalAddress::read(&one)).collect())
}

impl LocalAddress {
    fn read(entry: &InterfaceAddress) -> Option<Self> {
        let address = entry.address.as_ref()?;
        let v4 = address.as_sockaddr_in();
        let v6 = address.as_sockaddr_in6();
        let address = v4
            .map(|v4| SocketAddrV4::new(v4.ip(), 0).into())
            .or_else(|| v6.map(|v6| SocketAddrV6::new(v6.ip(), 0, 0, v6.scope_id()).into()))?;
        Some(Self {
            interface: entry.interface_name.clone(),
            address,
        })
    }
}

/// What a local name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Local {
    /// A network interface.
    Interface(String),
    /// An RDMA device.
    Device(String),
    /// The whole machine.
    Machine,
}

impl Local {
    /// The interface or, failing that, the device of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        if parse_numeric(name).is_some() {
            return None;
        }
        if interface_index(name).is_some() {
            return Some(Self::Interface(name.to_owned()));
        }
        // A failure to list devices counts as no device.
        let devices = RdmaDevice::list().unwrap_or_default();
        let is_device = devices.iter().any(|device| device.name == name);
        is_device.then(|| Self::Device(name.to_owned()))
    }

    /// Its addresses. For a device those of the whole machine: the kernel knows which of
    /// them the device serves.
    pub(crate) fn addresses(&self) -> Result<Vec<CmAddr>> {
        let found = match self {
            Self::Interface(name) => of_interface(interface_addresses()?, name),
            Self::Device(_) | Self::Machine => interface_addresses()?,
        };
        if found.is_empty() {
            return Err(NameError::NoData.into());
        }
        Ok(found.into_iter().map(|one| one.address.into()).collect())
    }
}

/// The index of an interface. `if_nametoindex(3)` makes the kernel load a module for an
/// unknown name (`netdev-NAME`), which takes long.
pub(crate) fn interface_index(name: &str) -> Option<u32> {
    let all = if_nameindex().ok()?;
    let found = all
        .iter()
        .find(|one| one.name().to_bytes() == name.as_bytes());
    found.map(Interface::index)
}

fn of_interface(mut all: Vec<LocalAddress>, name: &str) -> Vec<LocalAddress> {
    all.retain(|one| one.interface == name);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_its_address() {
        let all = interface_addresses().unwrap();
        let lo = of_interface(all, "lo");
        let has = |text: &str| lo.iter().any(|one| one.address == text.parse().unwrap());
        assert!(has("127.0.0.1:0"), "{lo:?}");
    }

    #[test]
    fn names_of_interfaces_are_known() {
        assert_eq!(Local::named("lo"), Some(Local::Interface("lo".to_owned())));
        assert_eq!(Local::named("no-such-thing"), None);
        let gone = Local::Interface("no-such-thing".to_owned());
        assert_eq!(gone.addresses(), Err(NameError::NoData.into()));
    }
}
