//! Addresses, by the kernel's rules.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use nix::errno::Errno;
use rdmacm_abi::{
    AddressFamily, Be16, Be64, IB_IP_PORT_MASK, IpSlot, SockaddrIb, SockaddrIn, SockaddrIn6,
    SockaddrStorage,
};
use rdmacm_core::Gid;
use zerocopy::{FromBytes, IntoBytes};

/// The address of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    V4(SocketAddrV4),
    V6(SocketAddrV6),
    Ib(SockaddrIb),
}

impl Address {
    /// The address in a request's slot; `EINVAL` unless it has exactly the size
    /// of a family that the kernel knows (`rdma_addr_size_kss`).
    pub(crate) fn read(slot: &SockaddrStorage, size: u16) -> Result<Self, Errno> {
        if size == 0 || size != slot.size() {
            return Err(Errno::EINVAL);
        }
        let address = match slot.family() {
            AddressFamily::INET => slot.as_in().map(|address| Self::V4(address.into())),
            AddressFamily::INET6 => slot.as_in6().map(|address| Self::V6(address.into())),
            _ => slot.as_ib().map(Self::Ib),
        };
        address.ok_or(Errno::EINVAL)
    }

    /// The address in the slot of an IP-only request; `None` for another family
    /// (`rdma_addr_size_in6`).
    pub(crate) fn read_ip(slot: &IpSlot) -> Option<Self> {
        match slot.family() {
            AddressFamily::INET => slot.as_in().map(|address| Self::V4(address.into())),
            AddressFamily::INET6 => slot.as_in6().map(|address| Self::V6(address.into())),
            _ => None,
        }
    }

    /// The slot of an IP-only answer. As in the kernel, it has the first bytes of an
    /// InfiniBand address.
    pub(crate) fn write_ip(address: Option<Self>) -> IpSlot {
        let (storage, _) = Self::write(address);
        let bytes = storage.as_bytes();
        IpSlot::read_from_prefix(bytes).map_or(IpSlot::ZERO, |(slot, _)| slot)
    }

    pub(crate) fn from_ip(address: IpAddr, port: u16) -> Self {
        match SocketAddr::new(address, port) {
            SocketAddr::V4(address) => Self::V4(address),
            SocketAddr::V6(address) => Self::V6(address),
        }
    }

    pub(crate) fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::V4(address) => Some(IpAddr::V4(*address.ip())),
            Self::V6(address) => Some(IpAddr::V6(*address.ip())),
            Self::Ib(_) => None,
        }
    }

    /// The flow label of an IPv6 address.
    pub(crate) fn flow_label(&self) -> u32 {
        match self {
            Self::V6(address) => u32::from_be(address.flowinfo()) & 0xf_ffff,
            _ => 0,
        }
    }

    /// The same address with another host.
    pub(crate) fn with_ip(self, address: IpAddr) -> Self {
        match (self, address) {
            (Self::V6(own), IpAddr::V6(ip)) => Self::V6(SocketAddrV6::new(
                ip,
                own.port(),
                own.flowinfo(),
                own.scope_id(),
            )),
            _ => Self::from_ip(address, self.port()),
        }
    }

    /// The slot of a response, and the size of its address.
    pub(crate) fn write(address: Option<Self>) -> (SockaddrStorage, u16) {
        let slot = match address {
            None => SockaddrStorage::ZERO,
            Some(Self::V4(address)) => SockaddrIn::from(address).into(),
            Some(Self::V6(address)) => SockaddrIn6::from(address).into(),
            Some(Self::Ib(address)) => address.into(),
        };
        (slot, slot.size())
    }

    pub(crate) fn family(&self) -> AddressFamily {
        match self {
            Self::V4(_) => AddressFamily::INET,
            Self::V6(_) => AddressFamily::INET6,
            Self::Ib(_) => AddressFamily::IB,
        }
    }

    /// The wildcard of the same family. An InfiniBand one keeps the partition, an
    /// IPv6 one the scope (`cma_bind_addr`).
    pub(crate) fn wildcard(&self) -> Self {
        match self {
            Self::V4(_) => Self::V4(SocketAddrV4::new([0; 4].into(), 0)),
            Self::V6(address) => Self::V6(SocketAddrV6::new(
                Ipv6Addr::UNSPECIFIED,
                0,
                0,
                address.scope_id(),
            )),
            Self::Ib(address) => Self::Ib(SockaddrIb {
                pkey: address.pkey,
                ..SockaddrIb::default()
            }),
        }
    }

    /// The loopback address of the same family (`cma_set_loopback`).
    pub(crate) fn loopback(self) -> Self {
        match self {
            Self::V4(_) => self.with_ip(Ipv4Addr::LOCALHOST.into()),
            Self::V6(_) => self.with_ip(Ipv6Addr::LOCALHOST.into()),
            Self::Ib(address) => Self::Ib(SockaddrIb {
                addr: Gid::LOOPBACK.0,
                ..address
            }),
        }
    }

    /// Whether it stands for every device: the kernel takes a loopback address
    /// for the wildcard (`cma_any_addr`).
    pub(crate) fn is_any(&self) -> bool {
        match self {
            Self::V4(address) => self.is_unspecified() || address.ip().is_loopback(),
            Self::V6(address) => self.is_unspecified() || address.ip().is_loopback(),
            Self::Ib(address) => self.is_unspecified() || Gid(address.addr) == Gid::LOOPBACK,
        }
    }

    /// Whether it is the wildcard (`cma_zero_addr`).
    pub(crate) fn is_unspecified(&self) -> bool {
        match self {
            // All of 0.0.0.0/8.
            Self::V4(address) => address.ip().octets()[0] == 0,
            Self::V6(address) => address.ip().is_unspecified(),
            Self::Ib(address) => Gid(address.addr) == Gid::UNSPECIFIED,
        }
    }

    /// A link-local IPv6 address needs a scope id (`cma_check_linklocal`).
    pub(crate) fn lacks_scope(&self) -> bool {
        matches!(self, Self::V6(address)
            if address.ip().is_unicast_link_local() && address.scope_id() == 0)
    }

    /// The port; of an InfiniBand address those of the lowest 16 bits of the
    /// service id that count (`cma_port_from_sockaddr`).
    pub(crate) fn port(&self) -> u16 {
        match self {
            Self::V4(address) => address.port(),
            Self::V6(address) => address.port(),
            Self::Ib(address) => {
                let port = address.service_id.get() & address.service_id_mask.get();
                u16::try_from(port & IB_IP_PORT_MASK).unwrap_or_default()
            }
        }
    }

    /// Puts a port into the address, of which all bits count from now on
    /// (`cma_bind_port`).
    pub(crate) fn set_port(&mut self, port: u16) {
        match self {
            Self::V4(address) => address.set_port(port),
            Self::V6(address) => address.set_port(port),
            Self::Ib(address) => {
                let service_id = address.service_id.get() & address.service_id_mask.get();
                address.service_id = Be64::new(service_id | u64::from(port));
                address.service_id_mask = Be64::new(u64::MAX);
            }
        }
    }

    /// Whether two addresses are of the same host (`cma_addr_cmp`).
    pub(crate) fn is_same_host(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::V4(one), Self::V4(other)) => one.ip() == other.ip(),
            (Self::V6(one), Self::V6(other)) => {
                let scoped = other.ip().is_unicast_link_local();
                one.ip() == other.ip() && (!scoped || one.scope_id() == other.scope_id())
            }
            (Self::Ib(one), Self::Ib(other)) => one.addr == other.addr,
            _ => false,
        }
    }

    /// An InfiniBand address with this GID and partition, and any service.
    pub(crate) fn infiniband(gid: Gid, pkey: u16, service_id: u64) -> SockaddrIb {
        SockaddrIb {
            pkey: Be16::new(pkey),
            addr: gid.0,
            service_id: Be64::new(service_id),
            ..SockaddrIb::default()
        }
    }
}
