//! The IP addresses of a port's network interface.

use std::net::IpAddr;

use rdmacm::addrinfo::{LocalAddress, interface_addresses};

/// The addresses of this machine's network interfaces.
#[derive(Debug)]
pub(crate) struct Addresses(Vec<LocalAddress>);

impl Addresses {
    /// Empty if the kernel reports none.
    pub(crate) fn of_this_machine() -> Self {
        Self(interface_addresses().unwrap_or_default())
    }

    pub(crate) fn for_interface(&self, interface: &str) -> Vec<String> {
        let addresses = self.0.iter().filter(|one| one.interface == interface);
        addresses.map(text).collect()
    }
}

/// As `rdmacm resolve` takes it: a link-local address with its scope.
fn text(address: &LocalAddress) -> String {
    match address.address.ip() {
        IpAddr::V6(ip) if ip.is_unicast_link_local() => format!("{ip}%{}", address.interface),
        ip => ip.to_string(),
    }
}
