//! Resolving names.

use rdmacm_addrinfo::{self as addrinfo, AddrInfo, Hints};

use super::Node;

impl Node {
    /// Resolves a host and a service to everything that RDMA reaches there, see
    /// [`addrinfo::resolve`](crate::addrinfo::resolve). The hints have the deadline.
    ///
    /// # Errors
    /// Those of [`addrinfo::resolve`](crate::addrinfo::resolve).
    #[doc(alias = "rdma_getaddrinfo")]
    pub fn resolve<'name>(
        &self,
        host: impl Into<Option<&'name str>>,
        service: impl Into<Option<&'name str>>,
        hints: &Hints,
    ) -> addrinfo::Result<Vec<AddrInfo>> {
        self.resolver.resolve(host, service, hints)
    }
}
