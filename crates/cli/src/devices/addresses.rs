//! The IP addresses of this machine's network interfaces.

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;

/// Interface names and their addresses.
#[derive(Debug)]
pub(crate) struct Addresses(Vec<(String, String)>);

impl Addresses {
    /// Empty where the system will not tell.
    pub(crate) fn of_this_machine() -> Self {
        let Ok(interfaces) = getifaddrs() else {
            return Self(Vec::new());
        };
        Self(
            interfaces
                .filter_map(|interface| {
                    let address = ip(&interface.interface_name, interface.address.as_ref()?)?;
                    Some((interface.interface_name, address))
                })
                .collect(),
        )
    }

    pub(crate) fn of(&self, interface: &str) -> Vec<String> {
        self.0
            .iter()
            .filter(|(name, _)| name == interface)
            .map(|(_, address)| address.clone())
            .collect()
    }
}

/// As `rdmacm resolve` takes it: a link-local address with its scope.
fn ip(interface: &str, address: &SockaddrStorage) -> Option<String> {
    if let Some(v4) = address.as_sockaddr_in() {
        return Some(v4.ip().to_string());
    }
    let ip = address.as_sockaddr_in6()?.ip();
    Some(if ip.is_unicast_link_local() {
        format!("{ip}%{interface}")
    } else {
        ip.to_string()
    })
}
