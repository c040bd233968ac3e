//! The source address of a connection.

use std::cmp::Reverse;
use std::net::SocketAddr;

use rdmacm_addrinfo::{self as addrinfo, LocalAddress, interface_addresses};
use rdmacm_core::{CmAddr, EventChannel, PortSpace};

use crate::error::Cause;

/// How the source address of a connection is chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum SourceAddress {
    /// By the kernel's routes.
    #[default]
    ByRoute,
    /// An address of this host. The kernel chooses the port if it is 0.
    Address(CmAddr),
    /// An address of a network interface, by name.
    Interface(String),
    /// An address of an RDMA device, by name.
    Device(String),
}

impl SourceAddress {
    /// Whether it has a port, of which the kernel lets one id at a time connect.
    pub(crate) fn has_port(&self) -> bool {
        matches!(self, Self::Address(address) if address.port() != 0)
    }

    /// The source address to this destination for an id of the channel; `None` to leave it to the
    /// kernel.
    pub(crate) fn address(
        &self,
        channel: &EventChannel,
        destination: CmAddr,
    ) -> Result<Option<CmAddr>, Cause> {
        let (name, found) = match self {
            Self::ByRoute => return Ok(None),
            Self::Address(address) if address.family() != destination.family() => {
                return Err(Cause::NoAddress);
            }
            Self::Address(address) if are_on_two_links(*address, destination) => {
                return Err(Cause::OtherLink);
            }
            Self::Address(address) => return Ok(Some(*address)),
            Self::Interface(name) => (name, on_interface(name, destination)?),
            Self::Device(name) => (name, on_device(channel, name, destination)?),
        };
        let found = found.ok_or_else(|| Cause::NoSourceAddress(name.clone()))?;
        Ok(Some(found))
    }
}

/// Whether both are link-local, and of different links. The kernel would take the link of the
/// source and ignore that of the destination (`addr6_resolve`).
fn are_on_two_links(source: CmAddr, destination: CmAddr) -> bool {
    let scopes = [source, destination].map(|one| one.scope_id());
    source.is_link_local()
        && destination.is_link_local()
        && !scopes.contains(&0)
        && scopes[0] != scopes[1]
}

/// The interface's best address for the destination.
fn on_interface(name: &str, destination: CmAddr) -> Result<Option<CmAddr>, Cause> {
    let all = LocalAddress::for_interface(name).map_err(Cause::Name)?;
    let all = all
        .into_iter()
        .map(|one| HostAddress::to(destination, one))
        .collect();
    let best = best_first(all, destination).into_iter().next();
    Ok(best.map(|best| best.address))
}

/// The device's best address for the destination.
///
/// The kernel knows which device an address belongs to:
/// that of a VLAN or a bond belongs to that of the interface below. All addresses of an interface
/// belong to one device.
fn on_device(
    channel: &EventChannel,
    device: &str,
    destination: CmAddr,
) -> Result<Option<CmAddr>, Cause> {
    let mut others = Vec::new();
    let all = host_addresses(channel, destination).map_err(Cause::Name)?;
    let all = best_first(all, destination).into_iter();
    for (interface, address) in all.map(|one| (one.interface, one.address)) {
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
    /// The prefix length of its subnet, if the destination is in it.
    shared_prefix: Option<u32>,
}

impl HostAddress {
    fn to(destination: CmAddr, local: LocalAddress) -> Self {
        Self {
            shared_prefix: destination
                .ip()
                .filter(|ip| local.shares_subnet(*ip))
                .map(|_| local.prefix_length),
            interface: Some(local.interface),
            address: local.address.into(),
        }
    }
}

fn host_addresses(
    channel: &EventChannel,
    destination: CmAddr,
) -> addrinfo::Result<Vec<HostAddress>> {
    let Some(simulated) = channel.host_addresses() else {
        let all = interface_addresses()?.into_iter();
        return Ok(all.map(|one| HostAddress::to(destination, one)).collect());
    };
    let all = simulated.into_iter().map(|ip| HostAddress {
        interface: None,
        address: SocketAddr::new(ip, 0).into(),
        shared_prefix: None,
    });
    Ok(all.collect())
}

/// The addresses from which the destination can be reached: those with global scope before
/// link-local ones, and those of its subnet first, of the narrowest. A link-local destination is
/// reached from the address of its link.
fn best_first(mut all: Vec<HostAddress>, destination: CmAddr) -> Vec<HostAddress> {
    let link = destination.scope_id();
    let has_link = destination.is_link_local() && link != 0;
    all.retain(|one| {
        one.address.family() == destination.family()
            && (!has_link || one.address.scope_id() == link)
    });
    // A stable sort keeps the kernel's order otherwise.
    all.sort_by_key(|one| (one.address.is_link_local(), Reverse(one.shared_prefix)));
    all
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddrV6;

    use super::*;

    fn v6(text: &str, scope_id: u32) -> CmAddr {
        SocketAddrV6::new(text.parse().unwrap(), 0, 0, scope_id).into()
    }

    fn first(all: &[(CmAddr, Option<u32>)], destination: CmAddr) -> Option<CmAddr> {
        let all = all.iter().map(|(address, shared_prefix)| HostAddress {
            interface: None,
            address: *address,
            shared_prefix: *shared_prefix,
        });
        let best = best_first(all.collect(), destination);
        best.first().map(|best| best.address)
    }

    #[test]
    fn an_address_of_the_same_subnet_comes_first() {
        let (one, other) = (([10, 1, 0, 3], 0).into(), ([10, 2, 0, 3], 0).into());
        let to = ([10, 2, 0, 7], 7471).into();
        let best = |of_one, of_other| first(&[(one, of_one), (other, of_other)], to);
        assert_eq!(best(None, Some(16)), Some(other));
        assert_eq!(best(Some(8), Some(16)), Some(other));
        assert_eq!(best(Some(16), Some(8)), Some(one));
        assert_eq!(best(None, None), Some(one));
        assert_eq!(first(&[(v6("fd71::3", 0), None)], to), None);
    }

    #[test]
    fn a_link_local_destination_is_reached_from_its_link() {
        let (here, there) = (v6("fe80::3", 2), v6("fe80::3", 3));
        let (global, to) = (v6("fd71::3", 0), v6("fe80::7", 3));
        let all = [(global, None), (here, Some(64)), (there, Some(64))];
        assert_eq!(first(&all, to), Some(there));
        assert_eq!(first(&all[..2], to), None);
        assert_eq!(first(&all, v6("fd72::7", 0)), Some(global));
    }
}
