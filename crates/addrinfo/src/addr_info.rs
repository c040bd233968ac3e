//! What a name has to offer RDMA.

use std::fmt;

use rdmacm_core::{CmAddr, DeviceId, Family, Gid, PathData, PortSpace, QpType, Transport};

use crate::hints::AddrInfoFlags;
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
    /// The address to start from or to listen on, as the kernel chose or the
    /// caller gave it; its port is the caller's, 0 where the kernel is to choose
    /// one. `None` for a destination that cannot be reached and had none given.
    #[doc(alias = "ai_src_addr")]
    pub source: Option<CmAddr>,
    /// The address to reach; `None` in a passive result.
    #[doc(alias = "ai_dst_addr")]
    pub destination: Option<CmAddr>,
    /// The node's canonical name, if it was asked for, on its first address.
    #[doc(alias = "ai_dst_canonname")]
    #[doc(alias = "ai_src_canonname")]
    pub canonical_name: Option<String>,
    /// How RDMA gets there, or why it does not.
    pub reach: Result<Route, Unreachable>,
}

/// How RDMA gets to an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Route {
    /// The device and its port; `None` for a wildcard address, which belongs to
    /// every device.
    pub via: Option<Via>,
    /// The path records; empty on iWARP, which has none, in passive results,
    /// and where routes were not to be resolved.
    #[doc(alias = "ai_route")]
    pub path_records: Vec<PathData>,
}

/// The device and port an address is served by.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Via {
    /// The device as the kernel's answers name it.
    pub device: DeviceId,
    /// The device's name; `None` where nothing tells it without doubt.
    pub device_name: Option<String>,
    /// The protocol the device speaks, told together with its name.
    pub transport: Transport,
    /// The number of the port, from 1.
    pub port: u8,
    /// The source's GID.
    pub source_gid: Gid,
    /// The destination's GID; `None` in a passive result.
    pub destination_gid: Option<Gid>,
}

impl AddrInfo {
    /// Whether RDMA reaches the address.
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        self.reach.is_ok()
    }

    /// The device and port, of a reachable address that has them.
    #[must_use]
    pub fn via(&self) -> Option<&Via> {
        self.reach.as_ref().ok()?.via.as_ref()
    }
}

impl fmt::Display for AddrInfo {
    /// `10.1.0.7:7471 from 10.1.0.3 via mlx5_0 port 1`, or why not.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.destination, &self.source) {
            (Some(destination), source) => {
                destination.fmt(f)?;
                if let Some(ip) = source.and_then(|source| source.ip()) {
                    write!(f, " from {ip}")?;
                }
            }
            (None, Some(source)) => source.fmt(f)?,
            (None, None) => {}
        }
        match &self.reach {
            Ok(Route { via: Some(via), .. }) => write!(f, " via {via}"),
            Ok(Route { via: None, .. }) => f.write_str(" via every device"),
            Err(reason) => write!(f, ": {reason}"),
        }
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.device_name {
            Some(name) => f.write_str(name)?,
            None => write!(f, "unknown device {}", self.device.guid)?,
        }
        write!(f, " port {}", self.port)
    }
}
