//! Resolving a destination to a device and a route.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{IpSlot, Reserved, SockaddrStorage};

/// `struct rdma_ucm_resolve_ip`: resolves an IP address, as the first kernels
/// could. Event `ADDR_RESOLVED` or `ADDR_ERROR` follows.
#[doc(alias = "rdma_ucm_resolve_ip")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ResolveIp {
    /// The source, or [`IpSlot::ZERO`]; looked at only if the id is unbound.
    #[doc(alias = "src_addr")]
    pub source: IpSlot,
    /// The destination.
    #[doc(alias = "dst_addr")]
    pub destination: IpSlot,
    /// The id.
    pub id: u32,
    /// How long the neighbour has to answer, in milliseconds.
    pub timeout_ms: u32,
}

impl ResolveIp {
    /// A request to resolve `destination` for `id`.
    #[must_use]
    pub const fn new(
        id: u32,
        source: Option<IpSlot>,
        destination: IpSlot,
        timeout_ms: u32,
    ) -> Self {
        Self {
            source: match source {
                Some(source) => source,
                None => IpSlot::ZERO,
            },
            destination,
            id,
            timeout_ms,
        }
    }
}

/// `struct rdma_ucm_resolve_addr`: resolves an address of any family. Event
/// `ADDR_RESOLVED` or `ADDR_ERROR` follows.
#[doc(alias = "rdma_ucm_resolve_addr")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ResolveAddr {
    /// The id.
    pub id: u32,
    /// How long the neighbour has to answer, in milliseconds.
    pub timeout_ms: u32,
    /// Bytes of the source, exactly those of its family; 0 for none.
    #[doc(alias = "src_size")]
    pub source_size: u16,
    /// Bytes of the destination, exactly those of its family.
    #[doc(alias = "dst_size")]
    pub destination_size: u16,
    /// Zero, or the kernel answers EINVAL.
    pub reserved: Reserved<4>,
    /// The source; looked at only if the id is unbound.
    #[doc(alias = "src_addr")]
    pub source: SockaddrStorage,
    /// The destination.
    #[doc(alias = "dst_addr")]
    pub destination: SockaddrStorage,
}

impl ResolveAddr {
    /// A request to resolve `destination` for `id`.
    #[must_use]
    pub const fn new(
        id: u32,
        source: Option<SockaddrStorage>,
        destination: SockaddrStorage,
        timeout_ms: u32,
    ) -> Self {
        let source = match source {
            Some(source) => source,
            None => SockaddrStorage::ZERO,
        };
        Self {
            id,
            timeout_ms,
            source_size: source.size(),
            destination_size: destination.size(),
            reserved: Reserved::ZERO,
            source,
            destination,
        }
    }
}

/// `struct rdma_ucm_resolve_route`: finds the path to the resolved address.
/// Event `ROUTE_RESOLVED` or `ROUTE_ERROR` follows.
#[doc(alias = "rdma_ucm_resolve_route")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ResolveRoute {
    /// The id.
    pub id: u32,
    /// How long the subnet administrator has to answer, in milliseconds.
    /// 0 is EINVAL.
    pub timeout_ms: u32,
}

impl ResolveRoute {
    /// A request to resolve the route of `id`.
    #[must_use]
    pub const fn new(id: u32, timeout_ms: u32) -> Self {
        Self { id, timeout_ms }
    }
}
