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
    let all = all.into_iter().map(|one| one.address);
    Ok(of_family(all, family).into_iter().next())
}

/// The device's first address of the family. The kernel knows which device an address belongs to:
/// that of a VLAN or a bond belongs to that of the interface below.
fn on_device(
    channel: &EventChannel,
    device: &str,
    family: Family,
) -> Result<Option<CmAddr>, Cause> {
    let all = host_addresses(channel).map_err(Cause::Name)?;
    for address in of_family(all, family) {
        if device_of(channel, address)?.is_some_and(|found| found == device) {
            return Ok(Some(address));
        }
    }
    Ok(None)
}

fn host_addresses(channel: &EventChannel) -> addrinfo::Result<Vec<SocketAddr>> {
    if let Some(simulated) = channel.host_addresses() {
        let simulated = simulated.into_iter().map(|ip| SocketAddr::new(ip, 0));
        return Ok(simulated.collect());
    }
    let all = interface_addresses()?;
    Ok(all.into_iter().map(|one| one.address).collect())
}

/// The name of the device of a local address; `None` if RDMA does not serve the address.
fn device_of(channel: &EventChannel, address: CmAddr) -> rdmacm_core::Result<Option<String>> {
    let id = channel.create_id(PortSpace::TCP)?;
    if id.bind(address).is_err() {
        return Ok(None);
    }
    Ok(id.rdma_device()?.map(|device| device.name))
}

/// The addresses of the family, those with global scope first.
fn of_family(all: impl IntoIterator<Item = SocketAddr>, family: Family) -> Vec<CmAddr> {
    let all = all.into_iter().map(CmAddr::from);
    let mut of_family: Vec<_> = all.filter(|one| one.family() == family).collect();
    // A stable sort keeps the kernel's order otherwise.
    of_family.sort_by_key(CmAddr::is_link_local);
    of_family
}
