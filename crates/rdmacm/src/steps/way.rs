//! A way to a peer.

use rdmacm_addrinfo::{AddrInfo, Route};
use rdmacm_core::{CmAddr, PathData, PortSpace, QpType};

/// An address of a peer, and what is known of the way there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) destination: CmAddr,
    /// Where to start from, unless the caller says otherwise.
    pub(crate) source: Option<CmAddr>,
    /// The route; resolved where it is empty.
    pub(crate) route: Vec<PathData>,
    /// The port space of the peer's service, unless it is the caller's to say.
    pub(crate) port_space: Option<PortSpace>,
    /// What the peer expects in front of the private data.
    pub(crate) connect_data: Vec<u8>,
}

impl From<CmAddr> for Way {
    fn from(destination: CmAddr) -> Self {
        Self {
            destination,
            source: None,
            route: Vec::new(),
            port_space: None,
            connect_data: Vec::new(),
        }
    }
}

impl Way {
    /// The way to a destination that was looked for; `None` without one, and for what
    /// is no reliable connection.
    pub(crate) fn of(info: &AddrInfo) -> Option<Self> {
        if info.qp_type != QpType::RC {
            return None;
        }
        let known = info.reach.as_ref().map(Route::settable).unwrap_or_default();
        let route = if known.is_empty() { &info.route } else { known };
        Some(Self {
            destination: info.destination?,
            source: info.source,
            route: route.to_vec(),
            port_space: Some(info.port_space),
            connect_data: info.connect_data.clone(),
        })
    }
}
