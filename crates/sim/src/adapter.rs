//! What a host is made of.

use rdmacm_core::{Gid, Guid, IbAddr};

/// An InfiniBand adapter of a [`Host`](crate::Host).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    pub(crate) name: String,
    pub(crate) guid: Guid,
    pub(crate) ports: Vec<Port>,
}

/// A port of an [`Adapter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    pub(crate) gids: Vec<Gid>,
    pub(crate) pkeys: Vec<u16>,
    pub(crate) is_active: bool,
}

impl Adapter {
    /// An adapter of this name, such as `mlx5_0`, without ports. Its GUID follows
    /// from the name unless [`guid`](Self::guid) says otherwise.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            guid: guid_of(&name),
            name,
            ports: Vec::new(),
        }
    }

    /// Its node's GUID.
    #[must_use]
    pub fn guid(mut self, guid: Guid) -> Self {
        self.guid = guid;
        self
    }

    /// One more port. Ports are numbered from 1; those beyond the 255th cannot be
    /// named by the connection manager and are left out.
    #[must_use]
    pub fn port(mut self, port: Port) -> Self {
        if self.ports.len() < usize::from(u8::MAX) {
            self.ports.push(port);
        }
        self
    }

    /// The ports with their numbers.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (u8, &Port)> {
        (1..=u8::MAX).zip(&self.ports)
    }
}

impl Port {
    /// An active port with this GID, in the default partition.
    #[must_use]
    pub fn new(gid: Gid) -> Self {
        Self {
            gids: vec![gid],
            pkeys: vec![IbAddr::DEFAULT_PKEY],
            is_active: true,
        }
    }

    /// One more GID.
    #[must_use]
    pub fn gid(mut self, gid: Gid) -> Self {
        self.gids.push(gid);
        self
    }

    /// One more partition; the key is in host order.
    #[must_use]
    pub fn pkey(mut self, pkey: u16) -> Self {
        self.pkeys.push(pkey);
        self
    }

    /// The port has no link.
    #[must_use]
    pub fn down(mut self) -> Self {
        self.is_active = false;
        self
    }

    /// `ib_find_cached_pkey` of the kernel's `cache.c`: the bit for full membership
    /// does not count.
    pub(crate) fn is_in_partition(&self, pkey: u16) -> bool {
        let partition = |pkey: u16| pkey & 0x7fff;
        self.pkeys
            .iter()
            .any(|own| partition(*own) == partition(pkey))
    }
}

/// Any number that differs where names do (FNV-1a).
fn guid_of(name: &str) -> Guid {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    Guid(name.bytes().fold(0xcbf2_9ce4_8422_2325, mix))
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
    fn adapters_of_different_names_differ() {
        assert_ne!(Adapter::new("mlx5_0").guid, Adapter::new("mlx5_1").guid);
    }
}
