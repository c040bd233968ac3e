//! The source address of a connection.

use std::net::SocketAddr;

use rdmacm_addrinfo::{self as addrinfo, LocalAddress, interface_addresses};
use rdmacm_core::{CmAddr, EventChannel, Family, PortSpace};

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
    /// The source address of this family for an id of the channel; `None` to leave it to the
    /// kernel.
    pub(crate) fn address(
        &self,
        channel: &EventChannel,
        family: Family,
    ) -> Result<Option<CmAddr>, Cause> {
        let (name, found) = match self {
            Self::ByRoute => return Ok(None),
            Self::Address(address) if address.family() == family => return Ok(Some(*address)),
            Self::Address(_) => return Err(Cause::NoAddress),
            Self::Interface(name) => (name, on_interface(name, family)?),
            Self::Device(name) => (name, on_device(channel, name, family)?),
        };
        let found = found.ok_or_else(|| Cause::NoSourceAddress(name.clone()))?;
        Ok(Some(found))
    }
}

/// The interface's first address of the family.
fn on_interface(name: &str, family: Family) -> Result<Option<CmAddr>, Cause> {
    let all = LocalAddress::of_interface(name).map_err(Cause::Name)?;
    let all = all.into_iter().map(|one| CmAddr::from(one.address));
    // Of several, one with global scope.
    Ok(all
        .filter(|one| one.family() == family)
        .min_by_key(CmAddr::is_link_local))
}

/// The device's first address of the family. The kernel knows which device an address belongs to:
/// that of a VLAN or a bond belongs to that of the interface below. All addresses of an interface
/// belong to one device.
fn on_device(
    channel: &EventChannel,
    device: &str,
    family: Family,
) -> Result<Option<CmAddr>, Cause> {
    let mut others = Vec::new();
    let all = host_addresses(channel, family).map_err(Cause::Name)?;
    for HostAddress { interface, address } in all {
        if interface.as_ref().is_some_and(|one| others.contains(one)) {
            continue;
        }
        let id = channel.create_id(PortSpace::TCP)?;
        if id.bind(address).is_err() {
            // Of the interface, another one may be usable.
            continue;
        }
        if id.rdma_device()?.is_some_and(|found| found.name == device) {
            return Ok(Some(address));
        }
        others.extend(interface);
    }
    Ok(None)
}

/// A local address, and the interface that has it; `None` on a simulated host.
struct HostAddress {
    interface: Option<String>,
    address: CmAddr,
}

/// The addresses of the family, those with global scope first.
fn host_addresses(channel: &EventChannel, family: Family) -> addrinfo::Result<Vec<HostAddress>> {
    let mut all: Vec<_> = match channel.host_addresses() {
        Some(simulated) => simulated
            .into_iter()
            .map(|ip| HostAddress {
                interface: None,
                address: SocketAddr::new(ip, 0).into(),
            })
            .collect(),
        None => interface_addresses()?
            .into_iter()
            .map(|one| HostAddress {
                interface: Some(one.interface),
                address: one.address.into(),
            })
            .collect(),
    };
    all.retain(|one| one.address.family() == family);
    // A stable sort keeps the kernel's order otherwise.
    all.sort_by_key(|one| one.address.is_link_local());
    Ok(all)
}
