//! Binding an id to a local address.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{IpSlot, Reserved, SockaddrStorage};

/// `struct rdma_ucm_bind_ip`: binds to an IP address, as the first kernels
/// could.
#[doc(alias = "rdma_ucm_bind_ip")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct BindIp {
    /// Unused: the command has no response.
    pub response: u64,
    /// The address.
    pub addr: IpSlot,
    /// The id.
    pub id: u32,
}

impl BindIp {
    /// A request to bind `id` to `addr`.
    #[must_use]
    pub const fn new(id: u32, addr: IpSlot) -> Self {
        Self {
            response: 0,
            addr,
            id,
        }
    }
}

/// `struct rdma_ucm_bind`: binds to an address of any family.
#[doc(alias = "rdma_ucm_bind")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Bind {
    /// The id.
    pub id: u32,
    /// Bytes of the address, exactly those of its family.
    pub addr_size: u16,
    /// Zero, or the kernel answers EINVAL.
    pub reserved: Reserved<2>,
    /// The address.
    pub addr: SockaddrStorage,
}

impl Bind {
    /// A request to bind `id` to `addr`.
    #[must_use]
    pub const fn new(id: u32, addr: SockaddrStorage) -> Self {
        Self {
            id,
            addr_size: addr.size(),
            reserved: Reserved::ZERO,
            addr,
        }
    }
}
