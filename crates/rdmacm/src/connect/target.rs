//! One address to connect to.

use rdmacm_addrinfo::{AddrInfo, Route};
use rdmacm_core::{CmAddr, PathData, PortSpace, QpType};

/// An address of a peer, and what was resolved for it before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectTarget {
    pub(crate) destination: CmAddr,
    /// The source, unless the caller chooses one.
    pub(crate) source: Option<CmAddr>,
    /// The route. It is resolved if this is empty.
    pub(crate) route: Vec<PathData>,
    /// The type of queue pair that it was resolved for; any if `None`.
    pub(crate) qp_type: Option<QpType>,
    /// The port space of the peer's service; the caller's if `None`.
    pub(crate) port_space: Option<PortSpace>,
    /// What the peer expects in front of the private data.
    pub(crate) connect_data: Vec<u8>,
}

impl From<CmAddr> for ConnectTarget {
    fn from(destination: CmAddr) -> Self {
        Self {
            destination,
            source: None,
            route: Vec::new(),
            qp_type: None,
            port_space: None,
            connect_data: Vec::new(),
        }
    }
}

impl ConnectTarget {
    /// The target of an address lookup; `None` if it has no destination.
    pub(crate) fn from_addr_info(info: &AddrInfo) -> Option<Self> {
        let known = info.route.as_ref().map(Route::settable).unwrap_or_default();
        let route = if known.is_empty() { given(info) } else { known };
        Some(Self {
            destination: info.destination?,
            source: info.source,
            route: route.to_vec(),
            qp_type: Some(info.qp_type),
            port_space: Some(info.port_space),
            connect_data: info.connect_data.clone(),
        })
    }

    pub(crate) fn is_for(&self, qp_type: QpType) -> bool {
        self.qp_type.is_none_or(|known| known == qp_type)
    }

    /// The route from this source; empty if none is known.
    pub(crate) fn route_from(&self, source: Option<CmAddr>) -> &[PathData] {
        let is_its_source = match (source, self.source) {
            (Some(chosen), Some(known)) => chosen.is_same_host(&known),
            (chosen, _) => chosen.is_none(),
        };
        if is_its_source { &self.route } else { &[] }
    }
}

/// The route that ibacm or the caller gave, unless it begins at another port than that which the
/// kernel chose: it may reject the source that ibacm advises.
fn given(info: &AddrInfo) -> &[PathData] {
    let device_port = info
        .route
        .as_ref()
        .ok()
        .and_then(|route| route.device_port.as_ref());
    let begins_there = |path: &PathData| {
        device_port.is_none_or(|device_port| path.record.sgid == device_port.source_gid)
    };
    if info.paths.iter().all(begins_there) {
        &info.paths
    } else {
        &[]
    }
}
