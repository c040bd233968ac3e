//! Addresses as the kernel takes and gives them.

use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::{Be16, Be32, Be64, Reserved};

mod slot;

pub use slot::{IpSlot, SockaddrStorage};

numbers! {
    /// `sa_family_t`: what kind of address it is.
    #[doc(alias = "sa_family_t")]
    pub struct AddressFamily(u16) in user_space "sys/socket.h" {
        /// None: no address.
        UNSPEC = 0 => "AF_UNSPEC",
        /// IPv4.
        INET = 2 => "AF_INET",
        /// IPv6.
        INET6 = 10 => "AF_INET6",
        /// InfiniBand, native.
        IB = 27 => "AF_IB",
    }
}

/// `struct sockaddr_in`: an IPv4 address and a port.
#[doc(alias = "sockaddr_in")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct SockaddrIn {
    /// [`AddressFamily::INET`].
    #[doc(alias = "sin_family")]
    pub family: AddressFamily,
    /// The port.
    #[doc(alias = "sin_port")]
    pub port: Be16,
    /// The address.
    #[doc(alias = "sin_addr")]
    pub addr: Be32,
    /// Zero.
    #[doc(alias = "sin_zero")]
    pub zero: Reserved<8>,
}

impl From<SocketAddrV4> for SockaddrIn {
    fn from(address: SocketAddrV4) -> Self {
        Self {
            family: AddressFamily::INET,
            port: Be16::new(address.port()),
            addr: Be32::new(address.ip().to_bits()),
            zero: Reserved::ZERO,
        }
    }
}

impl From<SockaddrIn> for SocketAddrV4 {
    fn from(address: SockaddrIn) -> Self {
        Self::new(Ipv4Addr::from_bits(address.addr.get()), address.port.get())
    }
}

/// `struct sockaddr_in6`: an IPv6 address and a port.
#[doc(alias = "sockaddr_in6")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct SockaddrIn6 {
    /// [`AddressFamily::INET6`].
    #[doc(alias = "sin6_family")]
    pub family: AddressFamily,
    /// The port.
    #[doc(alias = "sin6_port")]
    pub port: Be16,
    /// Traffic class and flow label.
    #[doc(alias = "sin6_flowinfo")]
    pub flowinfo: Be32,
    /// The address.
    #[doc(alias = "sin6_addr")]
    pub addr: [u8; 16],
    /// The interface a link-local address belongs to; host order.
    #[doc(alias = "sin6_scope_id")]
    pub scope_id: u32,
}

impl From<SocketAddrV6> for SockaddrIn6 {
    fn from(address: SocketAddrV6) -> Self {
        Self {
            family: AddressFamily::INET6,
            port: Be16::new(address.port()),
            // std keeps this field as the kernel's bytes have it.
            flowinfo: Be32::new(u32::from_be(address.flowinfo())),
            addr: address.ip().octets(),
            scope_id: address.scope_id(),
        }
    }
}

impl From<SockaddrIn6> for SocketAddrV6 {
    fn from(address: SockaddrIn6) -> Self {
        Self::new(
            Ipv6Addr::from(address.addr),
            address.port.get(),
            address.flowinfo.get().to_be(),
            address.scope_id,
        )
    }
}

/// `struct sockaddr_ib`: a GID, a partition and a service id. Also what
/// [`QueryGid`](crate::QueryGid) answers with, on RoCE and iWARP too.
///
/// Source: `include/rdma/ib.h`.
#[doc(alias = "sockaddr_ib")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct SockaddrIb {
    /// [`AddressFamily::IB`].
    #[doc(alias = "sib_family")]
    pub family: AddressFamily,
    /// The partition key; 0xFFFF if none was given to the kernel.
    #[doc(alias = "sib_pkey")]
    pub pkey: Be16,
    /// Traffic class and flow label.
    #[doc(alias = "sib_flowinfo")]
    pub flowinfo: Be32,
    /// The GID.
    #[doc(alias = "sib_addr")]
    pub addr: [u8; 16],
    /// The service id: the port space shifted left by 16, plus the port.
    #[doc(alias = "sib_sid")]
    pub service_id: Be64,
    /// Which bits of the service id count.
    #[doc(alias = "sib_sid_mask")]
    pub service_id_mask: Be64,
    /// The scope; host order.
    #[doc(alias = "sib_scope_id")]
    pub scope_id: u64,
}

impl Default for SockaddrIb {
    /// A wildcard: all zero but the family.
    fn default() -> Self {
        Self {
            family: AddressFamily::IB,
            ..Self::new_zeroed()
        }
    }
}

impl From<SocketAddr> for SockaddrStorage {
    fn from(address: SocketAddr) -> Self {
        match address {
            SocketAddr::V4(v4) => SockaddrIn::from(v4).into(),
            SocketAddr::V6(v6) => SockaddrIn6::from(v6).into(),
        }
    }
}

impl From<SocketAddr> for IpSlot {
    fn from(address: SocketAddr) -> Self {
        match address {
            SocketAddr::V4(v4) => SockaddrIn::from(v4).into(),
            SocketAddr::V6(v6) => SockaddrIn6::from(v6).into(),
        }
    }
}
