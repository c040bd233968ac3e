//! Resolving the path to a peer.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rdmacm_addrinfo::{AddrInfoResolver, Hints};
use rdmacm_core::CmAddr;
use rdmacm_verbs::AddressHandle;

use super::resolution_service::ResolutionService;
use crate::datagrams::PathAddresses;

/// How long resolving a path may take.
const DEADLINE: Duration = Duration::from_secs(2);

/// A path that is being resolved. The service learns what came of it, whatever happens.
pub(super) struct Resolution {
    pub(super) service: Weak<ResolutionService>,
    pub(super) resolver: Arc<AddrInfoResolver>,
    pub(super) addresses: PathAddresses,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) found: Option<AddressHandle>,
}

impl Resolution {
    /// Resolves the path. The kernel asks the neighbour, so this blocks.
    pub(super) fn run(mut self) {
        let hints = Hints::ud()
            .source(CmAddr::from(self.from).with_port(0))
            .destination(self.to)
            .deadline(DEADLINE);
        let resolved = self.resolver.resolve(None, None, &hints);
        let resolved = resolved.ok().and_then(|found| found.into_iter().next());
        let route = resolved.and_then(|found| found.route.ok());
        let path = route.and_then(|route| route.path_records.into_iter().next());
        self.found = path.and_then(|path| self.addresses.create(&path.record));
    }
}

impl Drop for Resolution {
    fn drop(&mut self) {
        if let Some(service) = self.service.upgrade() {
            service.resolved(&self.to, self.found.take());
        }
    }
}
