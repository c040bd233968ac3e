//! Where a connection starts from.

use std::net::IpAddr;

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
    let addresses = nix::ifaddrs::getifaddrs().ok()?;
    let mut of_family = addresses
        .filter(|interface| interface.interface_name == name)
        .filter_map(|interface| interface.address)
        .filter_map(|address| {
            let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
            let v6 = address.as_sockaddr_in6();
            let scope = v6.map_or(0, nix::sys::socket::SockaddrIn6::scope_id);
            let ip = v4.or(v6.map(|v6| IpAddr::V6(v6.ip())))?;
            Some(with_scope(ip, scope))
        })
        .filter(|address| address.family() == family)
        .collect::<Vec<_>>();
    // Stable: otherwise in the kernel's order.
    of_family.sort_by_key(CmAddr::is_link_local);
    of_family.into_iter().next()
}

fn with_scope(ip: IpAddr, scope: u32) -> CmAddr {
    match ip {
        IpAddr::V4(ip) => CmAddr::from((ip, 0)),
        IpAddr::V6(ip) => std::net::SocketAddrV6::new(ip, 0, 0, scope).into(),
    }
}
