//! A result of a resolution.

use std::fmt;

use rdmacm_core::{CmAddr, Family, PathData, PortSpace, QpType};

use crate::flags::AddrInfoFlags;
use crate::route::{DevicePort, Route};
use crate::unreachable::Unreachable;

/// One address of a name, and how RDMA reaches it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "rdma_addrinfo")]
pub struct AddrInfo {
    /// The flags of the hints.
    #[doc(alias = "ai_flags")]
    pub flags: AddrInfoFlags,
    /// The family of the addresses.
    #[doc(alias = "ai_family")]
    pub family: Family,
    /// The type of queue pair.
    #[doc(alias = "ai_qp_type")]
    pub qp_type: QpType,
    /// The port space.
    #[doc(alias = "ai_port_space")]
    pub port_space: PortSpace,
    /// The source address, or the address to listen on, as the kernel chose or the caller
    /// gave it. Its port is the caller's; 0 lets the kernel choose. `None` for an
    /// unreachable destination without a source.
    #[doc(alias = "ai_src_addr")]
    pub source: Option<CmAddr>,
    /// The destination address; `None` in a passive result.
    #[doc(alias = "ai_dst_addr")]
    pub destination: Option<CmAddr>,
    /// The node's canonical name, if it was asked for, in the first result.
    #[doc(alias = "ai_dst_canonname")]
    #[doc(alias = "ai_src_canonname")]
    pub canonical_name: Option<String>,
    /// The paths that ibacm gave, for
    /// [`set_ib_path`](rdmacm_core::IdHandle::set_ib_path) (which uses the one that is
    /// [`PathData::USABLE`]); empty without ibacm. The [`Route`] of a reachable address
    /// has the kernel's path records.
    #[doc(alias = "ai_route")]
    pub paths: Vec<PathData>,
    /// The bytes that precede the caller's private data in a connect request. Empty except
    /// for the native InfiniBand address of an IP peer, which expects the IP addresses
    /// there.
    #[doc(alias = "ai_connect")]
    pub connect_data: Vec<u8>,
    /// The route, or why there is none.
    pub route: Result<Route, Unreachable>,
}

impl AddrInfo {
    /// Whether RDMA reaches the address.
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        self.route.is_ok()
    }

    /// The device and port, of a reachable address that has them.
    #[must_use]
    pub fn device_port(&self) -> Option<&DevicePort> {
        self.route.as_ref().ok()?.device_port.as_ref()
    }
}

impl fmt::Display for AddrInfo {
    /// `10.1.0.7:7471 from 10.1.0.3 via mlx5_0 port 1`, or why not. Asks the kernel for the
    /// device's name, see [`DevicePort::rdma_device`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.destination, &self.source) {
            (Some(destination), source) => {
                destination.fmt(f)?;
                if let Some(source) = source {
                    write!(f, " from {}", source.host())?;
                }
            }
            (None, Some(source)) => source.fmt(f)?,
            (None, None) => {}
        }
        match &self.route {
            Ok(Route {
                device_port: Some(device_port),
                ..
            }) => write!(f, " via {device_port}"),
            Ok(Route {
                device_port: None, ..
            }) => f.write_str(" via every device"),
            Err(reason) => write!(f, ": {reason}"),
        }
    }
}
