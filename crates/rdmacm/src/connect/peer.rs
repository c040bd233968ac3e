//! Whom to connect to.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use rdmacm_addrinfo::{AddrInfo, Unreachable};
use rdmacm_core::{CmAddr, IbAddr};

use super::ConnectTarget;
use crate::error::Target;

/// Whom to connect to: a name and a service, one address, or several that are raced.
///
/// | converts from | means |
/// |---|---|
/// | `"storage-7:7471"`, `"10.1.0.7:7471"`, `"[fe80::7%eth0]:7471"` | a host and a service, by name or number |
/// | `("storage-7", "7471")`, `("storage-7", 7471)`, `(ip_addr, 7471)` | the same in two parts |
/// | [`SocketAddr`], [`CmAddr`], references to them, [`IbAddr`] | one address |
/// | slices and vectors of [`SocketAddr`] or [`CmAddr`] | the first address that works |
/// | [`AddrInfo`], slices of it | results of [`addrinfo::resolve`](crate::addrinfo::resolve): the first that works, with the source, route, port space and connect data that are known. Those that RDMA does not reach, or that are for another type of queue pair, are left out. |
///
/// Names are resolved when the connector connects, and invalid text is reported then:
/// [`Cause::InvalidAddress`](crate::Cause::InvalidAddress) for a text without a port.
#[derive(Clone, Debug)]
#[doc(alias = "ToSocketAddrs")]
pub struct PeerAddr(pub(crate) Peer);

/// The parsed form of a [`PeerAddr`].
#[derive(Clone, Debug)]
pub(crate) enum Peer {
    /// A host and a service, as the name resolver knows them.
    Name { host: String, service: String },
    /// Addresses.
    Targets(Vec<ConnectTarget>),
    /// Addresses that RDMA does not reach.
    Unreachable {
        /// The first one.
        address: Option<CmAddr>,
        reason: Unreachable,
    },
    /// A text that is neither.
    Invalid(String),
}

impl Peer {
    /// What errors name.
    pub(crate) fn target(&self) -> Target {
        match self {
            Self::Name { host, service } => Target::name(format!("{host}:{service}")),
            Self::Invalid(text) => Target::name(text.as_str()),
            Self::Unreachable { address, .. } => address.map_or_else(Target::default, Target::from),
            Self::Targets(targets) => match targets.as_slice() {
                [target] => target.destination.into(),
                _ => Target::default(),
            },
        }
    }

    /// Without native InfiniBand addresses, unless there are no others.
    #[cfg(feature = "verbs")]
    pub(crate) fn with_ip_addresses(&self) -> Self {
        let has_ip = |target: &&ConnectTarget| target.destination.ip().is_some();
        match self {
            Self::Targets(targets) if targets.iter().any(|target| has_ip(&target)) => {
                Self::Targets(targets.iter().filter(has_ip).cloned().collect())
            }
            _ => self.clone(),
        }
    }

    fn parse(text: &str) -> Self {
        let invalid = || Self::Invalid(text.to_owned());
        let Some((host, service)) = text.rsplit_once(':') else {
            return invalid();
        };
        let bracketed = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        // Without brackets an IPv6 address cannot be separated from its port.
        if service.is_empty() || (bracketed.is_none() && host.contains([':', '[', ']'])) {
            return invalid();
        }
        let host = bracketed.unwrap_or(host);
        if host.is_empty() {
            return invalid();
        }
        Self::name(host, service)
    }

    fn name(host: impl Into<String>, service: impl Into<String>) -> Self {
        Self::Name {
            host: host.into(),
            service: service.into(),
        }
    }

    fn targets<'a>(found: impl IntoIterator<Item = &'a AddrInfo>) -> Self {
        let mut targets = Vec::new();
        let mut unreachable = None;
        for info in found {
            match &info.route {
                Ok(_) => targets.extend(ConnectTarget::from_addr_info(info)),
                Err(reason) => {
                    unreachable.get_or_insert((info.destination, reason));
                }
            }
        }
        match unreachable {
            Some((address, reason)) if targets.is_empty() => Self::Unreachable {
                address,
                reason: reason.clone(),
            },
            _ => Self::Targets(targets),
        }
    }

    fn addresses<A: Into<CmAddr>>(addresses: impl IntoIterator<Item = A>) -> Self {
        let addresses = addresses.into_iter().map(Into::into);
        Self::Targets(addresses.map(ConnectTarget::from).collect())
    }
}

/// As errors name it: the name with its service, or the address; `a peer` if there are several.
impl fmt::Display for PeerAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.target().fmt(f)
    }
}

impl From<&str> for PeerAddr {
    fn from(text: &str) -> Self {
        Self(Peer::parse(text))
    }
}

impl From<&String> for PeerAddr {
    fn from(text: &String) -> Self {
        Self(Peer::parse(text))
    }
}

impl From<String> for PeerAddr {
    fn from(text: String) -> Self {
        Self(Peer::parse(&text))
    }
}

macro_rules! from_pair {
    ($($host:ty, $service:ty;)*) => {$(
        impl From<($host, $service)> for PeerAddr {
            fn from((host, service): ($host, $service)) -> Self {
                Self(Peer::name(host, service.to_string()))
            }
        }
    )*};
}

from_pair!(
    &str, &str;
    &str, String;
    &str, u16;
    String, &str;
    String, String;
    String, u16;
    &String, &str;
    &String, &String;
    &String, u16;
);

impl From<&[AddrInfo]> for PeerAddr {
    fn from(found: &[AddrInfo]) -> Self {
        Self(Peer::targets(found))
    }
}

impl From<&Vec<AddrInfo>> for PeerAddr {
    fn from(found: &Vec<AddrInfo>) -> Self {
        Self(Peer::targets(found))
    }
}

impl From<AddrInfo> for PeerAddr {
    fn from(found: AddrInfo) -> Self {
        Self::from(&found)
    }
}

impl From<&AddrInfo> for PeerAddr {
    fn from(found: &AddrInfo) -> Self {
        Self(Peer::targets([found]))
    }
}

macro_rules! from_one_address {
    ($($address:ty),*) => {$(
        impl From<$address> for PeerAddr {
            fn from(address: $address) -> Self {
                Self(Peer::addresses([CmAddr::from(address)]))
            }
        }
    )*};
}

from_one_address!(
    CmAddr,
    IbAddr,
    SocketAddr,
    SocketAddrV4,
    SocketAddrV6,
    (IpAddr, u16),
    (Ipv4Addr, u16),
    (Ipv6Addr, u16),
    ([u8; 4], u16)
);

macro_rules! from_borrowed_address {
    ($($address:ty),*) => {$(
        impl From<&$address> for PeerAddr {
            fn from(address: &$address) -> Self {
                Self::from(*address)
            }
        }
    )*};
}

from_borrowed_address!(CmAddr, SocketAddr);

macro_rules! from_addresses {
    ($($addresses:ty),*) => {$(
        impl From<$addresses> for PeerAddr {
            fn from(addresses: $addresses) -> Self {
                Self(Peer::addresses(addresses.iter().copied()))
            }
        }
    )*};
}

from_addresses!(&[CmAddr], &Vec<CmAddr>, &[SocketAddr], &Vec<SocketAddr>);

impl<A: Into<CmAddr>, const N: usize> From<[A; N]> for PeerAddr {
    fn from(addresses: [A; N]) -> Self {
        Self(Peer::addresses(addresses))
    }
}

impl<A: Into<CmAddr>> From<Vec<A>> for PeerAddr {
    fn from(addresses: Vec<A>) -> Self {
        Self(Peer::addresses(addresses))
    }
}

impl<const N: usize> From<&[AddrInfo; N]> for PeerAddr {
    fn from(found: &[AddrInfo; N]) -> Self {
        Self(Peer::targets(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Option<(String, String)> {
        match PeerAddr::from(text).0 {
            Peer::Name { host, service } => Some((host, service)),
            Peer::Invalid(_) | Peer::Targets(_) | Peer::Unreachable { .. } => None,
        }
    }

    #[test]
    fn a_text_is_a_host_and_a_service() {
        for (text, host, service) in [
            ("storage-7:7471", "storage-7", "7471"),
            ("10.1.0.7:nfsrdma", "10.1.0.7", "nfsrdma"),
            ("[fe80::7%eth0]:7471", "fe80::7%eth0", "7471"),
            ("[::1]:1", "::1", "1"),
        ] {
            let expected = Some((host.to_owned(), service.to_owned()));
            assert_eq!(name(text), expected, "{text}");
        }
    }

    #[test]
    fn a_text_without_a_host_or_a_service_is_invalid() {
        for text in [
            "",
            "storage-7",
            "storage-7:",
            ":7471",
            "::1:7471",
            "[::1]",
            "[]:7",
            "[::1:7",
        ] {
            assert_eq!(name(text), None, "{text}");
            assert!(matches!(PeerAddr::from(text).0, Peer::Invalid(_)), "{text}");
        }
    }

    #[test]
    fn errors_name_what_the_caller_named() {
        let named = |peer: PeerAddr| peer.to_string();
        assert_eq!(named(("storage-7", 7471).into()), "storage-7:7471");
        assert_eq!(named("nowhere".into()), "nowhere");
        let address = SocketAddr::from(([10, 1, 0, 7], 7471));
        assert_eq!(named(address.into()), "10.1.0.7:7471");
        assert_eq!(named((&address).into()), "10.1.0.7:7471");
        assert_eq!(named((&CmAddr::from(address)).into()), "10.1.0.7:7471");
        assert_eq!(named(vec![address, address].into()), "a peer");
    }
}
