//! A way to a peer.

use rdmacm_addrinfo::{AddrInfo, Route};
use rdmacm_core::{CmAddr, PathData};

/// An address of a peer, and what is known of the way there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) destination: CmAddr,
    /// Where to start from, unless the caller says otherwise.
    pub(crate) source: Option<CmAddr>,
    /// The route; resolved where it is empty.
    pub(crate) route: Vec<PathData>,
    /// What the peer expects in front of the private data.
    pub(crate) connect_data: Vec<u8>,
}

impl From<CmAddr> for Way {
    fn from(destination: CmAddr) -> Self {
        Self {
            destination,
            source: None,
            route: Vec::new(),
            connect_data: Vec::new(),
        }
    }
}

impl Way {
    /// The way to a destination that was looked for; `None` without one.
    pub(crate) fn of(info: &AddrInfo) -> Option<Self> {
        let route = info.reach.as_ref().map(Route::settable);
        Some(Self {
            destination: info.destination?,
            source: info.source,
            route: route.unwrap_or_default().to_vec(),
            connect_data: info.connect_data.clone(),
        })
    }
}
