//! The RDMA devices that a host is built of.

use std::net::IpAddr;

use rdmacm_core::{Gid, Guid, IbAddr, Transport};

/// An RDMA device of a [`Host`](crate::Host): an InfiniBand adapter, or a RoCE or
/// iWARP device on a network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    pub(crate) name: String,
    guid: Option<Guid>,
    pub(crate) transport: Transport,
    /// The ports of an InfiniBand adapter.
    pub(crate) ports: Vec<Port>,
    /// The addresses of the network interface.
    pub(crate) addresses: Vec<IpAddr>,
    /// The MTU of the network interface.
    pub(crate) mtu: u32,
}

/// A port of an InfiniBand [`Adapter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    pub(crate) gids: Vec<Gid>,
    pub(crate) pkeys: Vec<u16>,
    /// Whether it was added with a link.
    is_up: bool,
    /// Whether its device has a link.
    pub(crate) is_device_up: bool,
}

impl Adapter {
    /// An InfiniBand adapter of this name, such as `mlx5_0`, without ports. Its GUID
    /// is derived from its name and its host unless [`guid`](Self::guid) sets it.
    #[must_use]
    pub fn infiniband(name: impl Into<String>) -> Self {
        Self::new(name.into(), Transport::InfiniBand)
    }

    /// A RoCE v2 device of this name, such as `rxe0`, on a network interface of its
    /// own without addresses.
    #[must_use]
    pub fn roce(name: impl Into<String>) -> Self {
        Self::new(name.into(), Transport::RoCE)
    }

    /// An iWARP device of this name, such as `siw0`, on a network interface of its
    /// own without addresses.
    #[must_use]
    pub fn iwarp(name: impl Into<String>) -> Self {
        Self::new(name.into(), Transport::IWarp)
    }

    fn new(name: String, transport: Transport) -> Self {
        Self {
            guid: None,
            name,
            transport,
            ports: Vec::new(),
            addresses: Vec::new(),
            mtu: 1500,
        }
    }

    /// Sets the GUID of its node.
    #[must_use]
    pub fn guid(mut self, guid: Guid) -> Self {
        self.guid = Some(guid);
        self
    }

    /// The GUID of the adapter in the host of this index, which no other host's has.
    pub(crate) fn guid_in(&self, host: usize) -> Guid {
        self.guid.unwrap_or_else(|| {
            let host = (host as u64).to_be_bytes();
            guid_of(self.name.bytes().chain(host))
        })
    }

    /// Adds a port. Ports are numbered from 1; those beyond the 255th, and those of a
    /// RoCE or iWARP device, which has one port, are ignored.
    #[must_use]
    pub fn port(mut self, port: Port) -> Self {
        if self.is_infiniband() && self.ports.len() < usize::from(u8::MAX) {
            self.ports.push(port);
        }
        self
    }

    /// Adds an address to the network interface of a RoCE or iWARP device. Ignored for
    /// an InfiniBand adapter, whose addresses are the GIDs of its ports.
    #[must_use]
    pub fn address(mut self, address: impl Into<IpAddr>) -> Self {
        if !self.is_infiniband() {
            self.addresses.push(address.into());
        }
        self
    }

    /// Sets the MTU of the network interface in bytes, which is 1500 otherwise. The
    /// path MTU of RoCE follows from it.
    #[must_use]
    pub fn mtu(mut self, bytes: u32) -> Self {
        self.mtu = bytes;
        self
    }

    fn is_infiniband(&self) -> bool {
        self.transport == Transport::InfiniBand
    }
}

impl Port {
    /// An active port with this GID, in the default partition.
    #[must_use]
    pub fn new(gid: Gid) -> Self {
        Self {
            gids: vec![gid],
            pkeys: vec![IbAddr::DEFAULT_PKEY],
            is_up: true,
            is_device_up: true,
        }
    }

    /// Adds a GID.
    #[must_use]
    pub fn gid(mut self, gid: Gid) -> Self {
        self.gids.push(gid);
        self
    }

    /// Adds a partition; the key is in host order.
    #[must_use]
    pub fn pkey(mut self, pkey: u16) -> Self {
        self.pkeys.push(pkey);
        self
    }

    /// Takes the link down for good, whatever [`Host::set_link_up`](crate::Host::set_link_up)
    /// does.
    #[must_use]
    pub fn down(mut self) -> Self {
        self.is_up = false;
        self
    }

    pub(crate) fn is_active(&self) -> bool {
        self.is_up && self.is_device_up
    }

    /// The index of a partition in the port's table. The bit for full membership is
    /// ignored (`ib_find_cached_pkey`, `cache.c`).
    pub(crate) fn pkey_index(&self, pkey: u16) -> Option<u16> {
        let partition = |pkey: u16| pkey & 0x7fff;
        let is_it = |own: &u16| partition(*own) == partition(pkey);
        let index = self.pkeys.iter().position(is_it)?;
        u16::try_from(index).ok()
    }

    pub(crate) fn is_in_partition(&self, pkey: u16) -> bool {
        self.pkey_index(pkey).is_some()
    }
}

/// A GUID that differs if names do (FNV-1a).
fn guid_of(bytes: impl Iterator<Item = u8>) -> Guid {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    Guid(bytes.fold(0xcbf2_9ce4_8422_2325, mix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_member_is_in_the_partition() {
        let port = Port::new(Gid([1; 16])).pkey(0x8001);
        for pkey in [0xffff, 0x7fff, 0x8001, 0x0001] {
            assert!(port.is_in_partition(pkey), "{pkey:#x}");
        }
        assert!(!port.is_in_partition(0x8002));
        assert!(!port.is_in_partition(0));
    }

    #[test]
    fn adapters_of_different_names_or_hosts_differ() {
        let [one, other] = ["mlx5_0", "mlx5_1"].map(Adapter::infiniband);
        assert_ne!(one.guid_in(0), other.guid_in(0));
        assert_ne!(one.guid_in(0), one.guid_in(1));
        assert_eq!(one.guid(Guid(7)).guid_in(1), Guid(7));
    }
}
