//! What the events of datagram ids carry.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{AhAttr, MAX_PRIVATE_DATA, Reserved};

/// `struct rdma_ucm_ud_param`: the parameters of events of UD ids.
#[doc(alias = "rdma_ucm_ud_param", alias = "rdma_ud_param")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct UdParam {
    /// The peer's queue pair number; 0xFFFFFF for a multicast group.
    #[doc(alias = "qp_num")]
    pub qp_number: u32,
    /// The queue key to send with.
    pub qkey: u32,
    /// What to make an address handle of.
    pub ah_attr: AhAttr,
    /// The private data, zeros after it.
    pub private_data: [u8; MAX_PRIVATE_DATA],
    /// Bytes of `private_data` that are used: the fixed size of the message's
    /// field.
    pub private_data_len: u8,
    /// Zero.
    pub reserved: Reserved<7>,
}

impl UdParam {
    /// The used bytes of the private data.
    #[must_use]
    pub fn private_data(&self) -> &[u8] {
        &self.private_data[..usize::from(self.private_data_len)]
    }
}
