//! The addresses of this machine.

use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};

use nix::errno::Errno;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::{Interface, Interfaces, if_nameindex, if_nametoindex};
use nix::sys::socket::SockaddrStorage;
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
    /// How many of its leading bits are those of its subnet.
    #[doc(alias = "ifa_netmask")]
    pub prefix_length: u32,
}

/// Every IP address of this machine's network interfaces, in the kernel's order,
/// those included that no RDMA device serves. Source: `getifaddrs(3)`.
///
/// # Errors
/// [`Error::Interfaces`] if the kernel reports an error.
pub fn interface_addresses() -> Result<Vec<LocalAddress>> {
    let all = getifaddrs().map_err(failed)?;
    Ok(all.filter_map(|one| LocalAddress::read(&one)).collect())
}

fn failed(errno: Errno) -> Error {
    Error::Interfaces(errno as i32)
}

impl LocalAddress {
    /// The addresses of the network interface of this name, or of this alternative name
    /// (`altname`) of up to 15 bytes, in the kernel's order.
    ///
    /// # Errors
    /// [`Error::Interfaces`] if the kernel reports an error.
    pub fn for_interface(name: &str) -> Result<Vec<Self>> {
        let found = for_interface(interface_addresses()?, name);
        if !found.is_empty() {
            return Ok(found);
        }
        // An interface without addresses needs no second name.
        let (None, Some(index)) = (interface_index(name)?, alternative_index(name)?) else {
            return Ok(found);
        };
        let interfaces = interfaces()?;
        let Some(interface) = interfaces.iter().find(|one| one.index() == index) else {
            return Ok(found);
        };
        let name = interface.name().to_string_lossy();
        Ok(for_interface(interface_addresses()?, &name))
    }

    /// Whether an address is in the subnet of this one.
    #[must_use]
    pub fn shares_subnet(&self, other: IpAddr) -> bool {
        let common = match (self.address.ip(), other) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                (one.to_bits() ^ other.to_bits()).leading_zeros()
            }
            (IpAddr::V6(one), IpAddr::V6(other)) => {
                (one.to_bits() ^ other.to_bits()).leading_zeros()
            }
            _ => return false,
        };
        common >= self.prefix_length
    }

    fn read(entry: &InterfaceAddress) -> Option<Self> {
        let address = socket_addr(entry.address.as_ref()?)?;
        let mask = entry.netmask.as_ref().and_then(socket_addr);
        let prefix_length = match mask.map(|mask| mask.ip()) {
            Some(IpAddr::V4(mask)) => mask.to_bits().leading_ones(),
            Some(IpAddr::V6(mask)) => mask.to_bits().leading_ones(),
            // It is a subnet of its own.
            None if address.is_ipv4() => u32::BITS,
            None => u128::BITS,
        };
        // An IPv4 address has its label here, `eth0:1`; no interface has a colon in its name.
        let interface = entry.interface_name.split(':').next()?;
        Some(Self {
            interface: interface.to_owned(),
            address,
            prefix_length,
        })
    }
}

fn socket_addr(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in();
    let v6 = address.as_sockaddr_in6();
    v4.map(|v4| SocketAddrV4::new(v4.ip(), 0).into())
        .or_else(|| v6.map(|v6| SocketAddrV6::new(v6.ip(), 0, 0, v6.scope_id()).into()))
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
    ///
    /// # Errors
    /// The process has no descriptor left to find out.
    pub(crate) fn named(name: &str) -> Result<Option<Self>> {
        if parse_numeric(name).is_some() {
            return Ok(None);
        }
        if interface_index(name)?.is_some() {
            return Ok(Some(Self::Interface(name.to_owned())));
        }
        let devices = match RdmaDevice::list() {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                return Err(error.into());
            }
            // Without netlink and sysfs no name is that of a device.
            devices => devices.unwrap_or_default(),
        };
        let is_device = devices.iter().any(|device| device.name == name);
        Ok(is_device.then(|| Self::Device(name.to_owned())))
    }

    /// Its addresses. For a device those of the whole machine: the kernel knows which of
    /// them the device serves.
    pub(crate) fn addresses(&self) -> Result<Vec<CmAddr>> {
        let found = match self {
            Self::Interface(name) => for_interface(interface_addresses()?, name),
            Self::Device(_) | Self::Machine => interface_addresses()?,
        };
        if found.is_empty() {
            return Err(NameError::NoData.into());
        }
        Ok(found.into_iter().map(|one| one.address.into()).collect())
    }
}

/// The index of an interface; `None` also where the kernel does not list them, as without netlink.
pub(crate) fn interface_index(name: &str) -> Result<Option<u32>> {
    let all = match if_nameindex() {
        Ok(all) => all,
        Err(errno @ (Errno::EMFILE | Errno::ENFILE)) => return Err(failed(errno)),
        Err(_) => return Ok(None),
    };
    let found = all
        .iter()
        .find(|one| one.name().to_bytes() == name.as_bytes());
    Ok(found.map(Interface::index))
}

/// The index of an interface by an alternative name. `if_nametoindex(3)` makes the kernel
/// load a module for an unknown name (`netdev-NAME`), which takes long: not for the name of
/// what may be a host.
pub(crate) fn alternative_index(name: &str) -> Result<Option<u32>> {
    // musl would cut a longer name.
    if name.len() >= libc::IFNAMSIZ {
        return Ok(None);
    }
    match if_nametoindex(name) {
        Ok(index) => Ok(Some(index)),
        Err(errno @ (Errno::EMFILE | Errno::ENFILE)) => Err(failed(errno)),
        Err(_) => Ok(None),
    }
}

fn interfaces() -> Result<Interfaces> {
    if_nameindex().map_err(failed)
}

fn for_interface(mut all: Vec<LocalAddress>, name: &str) -> Vec<LocalAddress> {
    all.retain(|one| one.interface == name);
    all
}

#[cfg(test)]
mod tests {
    use nix::net::if_::InterfaceFlags;

    use super::*;

    #[test]
    fn the_loopback_interface_has_its_address() {
        let all = interface_addresses().unwrap();
        let lo = for_interface(all, "lo");
        let has = |text: &str| lo.iter().any(|one| one.address == text.parse().unwrap());
        assert!(has("127.0.0.1:0"), "{lo:?}");
        let v4 = lo.iter().find(|one| one.address.is_ipv4()).unwrap();
        assert_eq!(v4.prefix_length, 8);
        assert!(v4.shares_subnet([127, 1, 2, 3].into()));
        assert!(!v4.shares_subnet([128, 0, 0, 1].into()));
        assert!(!v4.shares_subnet(std::net::Ipv6Addr::LOCALHOST.into()));
    }

    #[test]
    fn names_of_interfaces_are_known() {
        let lo = Local::Interface("lo".to_owned());
        assert_eq!(Local::named("lo"), Ok(Some(lo)));
        assert_eq!(Local::named("no-such-thing"), Ok(None));
        let gone = Local::Interface("no-such-thing".to_owned());
        assert_eq!(gone.addresses(), Err(NameError::NoData.into()));
        assert_eq!(LocalAddress::for_interface("no-such-thing"), Ok(Vec::new()));
        let lo = LocalAddress::for_interface("lo").unwrap();
        assert_eq!(lo, for_interface(interface_addresses().unwrap(), "lo"));
    }

    #[test]
    fn a_label_is_not_the_name_of_an_interface() {
        let address = SocketAddrV4::new([10, 1, 0, 7].into(), 0);
        let storage = SockaddrStorage::from(address);
        for name in ["eth0", "eth0:1"] {
            let entry = InterfaceAddress {
                interface_name: name.to_owned(),
                flags: InterfaceFlags::empty(),
                address: Some(storage),
                netmask: None,
                broadcast: None,
                destination: None,
            };
            let read = LocalAddress::read(&entry).unwrap();
            assert_eq!(read.interface, "eth0");
            assert_eq!(read.address, address.into());
        }
    }
}
