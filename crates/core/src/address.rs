//! Addresses an id can have: IPv4, IPv6 and native InfiniBand.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use crate::gid::Gid;

mod ib;
mod text;
mod wire;

pub use ib::IbAddr;
use text::Host;
pub use text::ParseAddrError;
pub(crate) use wire::{from_ip_slot, from_storage, to_ip_slot, to_storage};

/// An address of the connection manager: the source or destination of an id.
///
/// The port is the RDMA port, a number of the id's port space; it has nothing
/// to do with TCP's or UDP's ports, except that a listener on iWARP also takes the TCP port of the
/// same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "sockaddr")]
#[doc(alias = "sockaddr_storage")]
pub enum CmAddr {
    /// An IPv4 address and port (`AF_INET`).
    V4(SocketAddrV4),
    /// An IPv6 address, port, flow label and scope id (`AF_INET6`).
    V6(SocketAddrV6),
    /// A native InfiniBand address (`AF_IB`).
    Ib(IbAddr),
}

/// Which kind of address a [`CmAddr`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// `AF_INET`.
    V4,
    /// `AF_INET6`.
    V6,
    /// `AF_IB`, 27.
    #[doc(alias = "AF_IB")]
    Ib,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
            Self::Ib => "InfiniBand",
        })
    }
}

impl CmAddr {
    /// The wildcard address of a family with port 0: `0.0.0.0`, `::` or the
    /// empty GID.
    #[must_use]
    pub fn any(family: Family) -> Self {
        match family {
            Family::V4 => Self::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)),
            Family::V6 => Self::V6(SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 0, 0, 0)),
            Family::Ib => Self::Ib(IbAddr::new(Gid::UNSPECIFIED).with_pkey(0)),
        }
    }

    /// Which kind of address this is.
    #[must_use]
    pub fn family(&self) -> Family {
        match self {
            Self::V4(_) => Family::V4,
            Self::V6(_) => Family::V6,
            Self::Ib(_) => Family::Ib,
        }
    }

    /// The port, host order; of an InfiniBand address the low 16 bits of its
    /// service id.
    #[must_use]
    #[doc(alias = "rdma_get_src_port")]
    #[doc(alias = "rdma_get_dst_port")]
    pub fn port(&self) -> u16 {
        match self {
            Self::V4(address) => address.port(),
            Self::V6(address) => address.port(),
            Self::Ib(address) => address.port(),
        }
    }

    /// Whether both name the same host or group. Ignores ports and flow labels.
    #[must_use]
    pub fn is_same_host(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::V4(one), Self::V4(other)) => one.ip() == other.ip(),
            (Self::V6(one), Self::V6(other)) => {
                (one.ip(), one.scope_id()) == (other.ip(), other.scope_id())
            }
            (Self::Ib(one), Self::Ib(other)) => {
                (one.gid, one.pkey, one.scope_id) == (other.gid, other.pkey, other.scope_id)
            }
            _ => false,
        }
    }

    /// The same address with another port.
    #[must_use]
    pub fn with_port(mut self, port: u16) -> Self {
        match &mut self {
            Self::V4(address) => address.set_port(port),
            Self::V6(address) => address.set_port(port),
            Self::Ib(address) => *address = address.with_port(port),
        }
        self
    }

    /// The IP address; `None` for a native InfiniBand address.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        self.socket_addr().map(|address| address.ip())
    }

    /// The IP socket address; `None` for a native InfiniBand address.
    #[must_use]
    pub fn socket_addr(&self) -> Option<SocketAddr> {
        match *self {
            Self::V4(address) => Some(SocketAddr::V4(address)),
            Self::V6(address) => Some(SocketAddr::V6(address)),
            Self::Ib(_) => None,
        }
    }

    /// Whether this is the wildcard address of its family.
    #[must_use]
    pub fn is_unspecified(&self) -> bool {
        match self {
            Self::V4(address) => address.ip().is_unspecified(),
            Self::V6(address) => address.ip().is_unspecified(),
            Self::Ib(address) => address.gid == Gid::UNSPECIFIED,
        }
    }

    /// The interface a link-local IPv6 address belongs to; 0 for none.
    #[must_use]
    pub fn scope_id(&self) -> u32 {
        match self {
            Self::V6(address) => address.scope_id(),
            Self::V4(_) | Self::Ib(_) => 0,
        }
    }

    /// Whether this is a link-local IPv6 address, which requires a scope id.
    #[must_use]
    pub fn is_link_local(&self) -> bool {
        matches!(self, Self::V6(address) if address.ip().is_unicast_link_local())
    }

    /// The address without its port, to display: `10.1.0.3`, `fe80::1%2`.
    #[must_use]
    pub fn host(&self) -> impl fmt::Display {
        Host(*self)
    }

    /// Whether this is a loopback address, which the kernel treats as the wildcard,
    /// because no RDMA device has one. The GID `::1` is InfiniBand's.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::V4(address) => address.ip().is_loopback(),
            Self::V6(address) => address.ip().is_loopback(),
            Self::Ib(address) => address.gid == Gid::LOOPBACK,
        }
    }
}

impl From<SocketAddr> for CmAddr {
    fn from(address: SocketAddr) -> Self {
        match address {
            SocketAddr::V4(address) => Self::V4(address),
            SocketAddr::V6(address) => Self::V6(address),
        }
    }
}

impl From<&SocketAddr> for CmAddr {
    fn from(address: &SocketAddr) -> Self {
        (*address).into()
    }
}

impl From<&CmAddr> for CmAddr {
    fn from(address: &CmAddr) -> Self {
        *address
    }
}

impl From<SocketAddrV4> for CmAddr {
    fn from(address: SocketAddrV4) -> Self {
        Self::V4(address)
    }
}

impl From<SocketAddrV6> for CmAddr {
    fn from(address: SocketAddrV6) -> Self {
        Self::V6(address)
    }
}

impl From<IbAddr> for CmAddr {
    fn from(address: IbAddr) -> Self {
        Self::Ib(address)
    }
}

/// The error for a native InfiniBand address where an IP address is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is a native InfiniBand address, not an IP address")]
pub struct TryFromAddrError(IbAddr);

impl TryFrom<CmAddr> for SocketAddr {
    type Error = TryFromAddrError;

    /// As [`CmAddr::socket_addr`].
    fn try_from(address: CmAddr) -> Result<Self, TryFromAddrError> {
        match address {
            CmAddr::V4(address) => Ok(Self::V4(address)),
            CmAddr::V6(address) => Ok(Self::V6(address)),
            CmAddr::Ib(address) => Err(TryFromAddrError(address)),
        }
    }
}

impl<I: Into<IpAddr>> From<(I, u16)> for CmAddr {
    fn from(address: (I, u16)) -> Self {
        SocketAddr::from(address).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_converts_where_an_address_is_expected() {
        let socket_addr: SocketAddr = "10.1.0.7:7471".parse().unwrap();
        let expected = CmAddr::from(socket_addr);
        assert_eq!(CmAddr::from(&socket_addr), expected);
        assert_eq!(CmAddr::from(&expected), expected);
    }

    #[test]
    fn only_an_ip_address_is_a_socket_address() {
        for text in ["10.1.0.7:7471", "[fe80::7%2]:7471"] {
            let address: CmAddr = text.parse().unwrap();
            assert_eq!(SocketAddr::try_from(address), Ok(text.parse().unwrap()));
        }
        let native = SocketAddr::try_from(CmAddr::any(Family::Ib));
        let words = native.unwrap_err().to_string();
        assert!(words.starts_with("[::]/pkey 0x0000 is a native"), "{words}");
    }
}
