//! Resolving names.

use rdmacm_addrinfo::{self as addrinfo, AddrInfo, Hints};

use super::Node;
use crate::event_loop::spawn_blocking;

impl Node {
    /// Resolves a host and a service to everything that RDMA reaches there, see
    /// [`addrinfo::resolve`](crate::addrinfo::resolve). The hints have the deadline.
    ///
    /// The node's [executor](super::NodeOptions::executor) runs it. After the future is
    /// dropped, it goes on until the deadline of the hints.
    ///
    /// # Errors
    /// Those of [`addrinfo::resolve`](crate::addrinfo::resolve);
    /// [`Rdma`](crate::addrinfo::Error::Rdma) if the node cannot read its events.
    #[doc(alias = "rdma_getaddrinfo")]
    pub async fn resolve<'name>(
        &self,
        host: impl Into<Option<&'name str>>,
        service: impl Into<Option<&'name str>>,
        hints: &Hints,
    ) -> addrinfo::Result<Vec<AddrInfo>> {
        let host = host.into().map(str::to_owned);
        let service = service.into().map(str::to_owned);
        let (resolver, hints) = (self.resolver.clone(), hints.clone());
        let task = move || resolver.resolve(host.as_deref(), service.as_deref(), &hints);
        let found = spawn_blocking(&self.event_loop, None, task).await?;
        found.unwrap_or(Err(addrinfo::Error::LookupPanicked))
    }
}
