//! The addresses of an id.

use crate::address::CmAddr;
use crate::gid::Gid;
use crate::path::PathData;
use crate::rdma_devices::DeviceId;

/// The addresses of an id, and the device port it is bound to.
#[doc(alias = "rdma_addr")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Addresses {
    /// The local address; `None` before the id is bound or resolved.
    #[doc(alias = "src_addr")]
    pub source: Option<CmAddr>,
    /// The peer's address; `None` if there is no peer.
    #[doc(alias = "dst_addr")]
    pub destination: Option<CmAddr>,
    /// The device the id is bound to; `None` for a wildcard address.
    pub device: Option<DeviceId>,
    /// The number of the device's port, from 1; 0 without a device.
    pub port_number: u8,
    /// The partition key of the port, host order; 0 on RoCE and iWARP. With
    /// [`AddressAbi::IpOnly`](crate::AddressAbi::IpOnly) that of the path record.
    pub pkey: u16,
}

/// The GIDs of the two ports of an id's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gids {
    /// The GID of the local port.
    #[doc(alias = "sgid")]
    pub source: Gid,
    /// The GID of the peer's port; `None` if there is no peer.
    #[doc(alias = "dgid")]
    pub destination: Option<Gid>,
}

/// The addresses, GIDs and path records of an id, queried together. See
/// [`IdHandle::route`](crate::IdHandle::route).
#[doc(alias = "rdma_route")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdRoute {
    /// The addresses, and the device port.
    pub addresses: Addresses,
    /// The GIDs; `None` without a device.
    pub gids: Option<Gids>,
    /// The path records, if they were asked for; none on iWARP.
    pub path_records: Vec<PathData>,
}
