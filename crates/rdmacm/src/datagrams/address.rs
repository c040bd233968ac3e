//! Where datagrams go to and come from.

use std::hash::{Hash, Hasher};

use rdmacm_core::{AhAttr, Gid, UdInfo};

/// Where a datagram goes to or comes from: a port, a queue pair there, and its queue key; or
/// a multicast group. A plain value, good for every socket of its device and port.
///
/// Two are equal if they name the same queue pair of the same port, by whatever path.
#[derive(Clone, Copy, Debug)]
#[doc(alias = "ibv_ah_attr", alias = "rdma_ud_param")]
pub struct DatagramAddr {
    /// What an address handle is made from.
    pub ah_attr: AhAttr,
    /// The number of the queue pair; `0xFFFFFF` for a group.
    #[doc(alias = "qp_num")]
    pub qp_number: u32,
    /// The key that the queue pair there expects,
    /// [`RDMA_UDP_QKEY`](rdmacm_core::RDMA_UDP_QKEY) for IP addresses.
    pub qkey: u32,
}

impl DatagramAddr {
    /// The port's GID, or the group's; `None` where a LID alone leads there.
    #[must_use]
    pub fn gid(&self) -> Option<Gid> {
        (self.ah_attr.is_global != 0).then_some(Gid(self.ah_attr.grh.destination_gid))
    }

    /// What makes it the same as another. The LID of a global address is its path's.
    fn identity(&self) -> (Option<Gid>, u16, u32) {
        let gid = self.gid();
        let lid = gid.map_or(self.ah_attr.destination_lid, |_| 0);
        (gid, lid, self.qp_number)
    }
}

impl PartialEq for DatagramAddr {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for DatagramAddr {}

impl Hash for DatagramAddr {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.identity().hash(hasher);
    }
}

impl From<UdInfo> for DatagramAddr {
    fn from(info: UdInfo) -> Self {
        Self {
            ah_attr: info.ah_attr,
            qp_number: info.qp_number,
            qkey: info.qkey,
        }
    }
}

/// A peer that was resolved: the address of its datagrams, and the private data of its reply.
#[derive(Clone, Debug)]
pub struct DatagramPeer {
    pub(super) addr: DatagramAddr,
    pub(super) private_data: Vec<u8>,
}

impl DatagramPeer {
    /// Where its datagrams go to.
    #[must_use]
    pub fn addr(&self) -> DatagramAddr {
        self.addr
    }

    /// The private data of its reply: the whole field of 136 bytes, with zeros after what it has
    /// sent.
    #[must_use]
    pub fn private_data(&self) -> &[u8] {
        &self.private_data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(lid: u16, gid: Option<u8>, qp_number: u32) -> DatagramAddr {
        let mut ah_attr = AhAttr {
            destination_lid: lid,
            is_global: gid.is_some().into(),
            ..AhAttr::default()
        };
        ah_attr.grh.destination_gid = [gid.unwrap_or_default(); 16];
        DatagramAddr {
            ah_attr,
            qp_number,
            qkey: 0,
        }
    }

    #[test]
    fn addresses_are_equal_by_port_and_queue_pair() {
        let global = addr(0, Some(7), 17);
        let mut by_another_path = addr(5, Some(7), 17);
        by_another_path.ah_attr.grh.hop_limit = 63;
        assert_eq!(global, by_another_path);
        assert_ne!(global, addr(0, Some(8), 17));
        assert_ne!(global, addr(0, Some(7), 18));
        assert_ne!(global, addr(0, None, 17));
        assert_eq!(addr(5, None, 17), addr(5, None, 17));
        assert_ne!(addr(5, None, 17), addr(6, None, 17));
        assert_eq!(global.gid(), Some(Gid([7; 16])));
        assert_eq!(addr(5, None, 17).gid(), None);
    }
}
