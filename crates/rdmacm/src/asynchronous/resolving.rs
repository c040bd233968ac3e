//! Resolving names.

use std::time::{Duration, Instant};

use rdmacm_addrinfo::{self as addrinfo, AddrInfo, Hints};
use rdmacm_core::{Deadline, Error};

use super::Node;
use crate::event_loop::spawn_blocking;

/// How long a resolution that has started may take beyond its deadline, see [`Hints::deadline`].
const LATENESS: Duration = Duration::from_secs(3);

impl Node {
    /// Resolves a host and a service to everything that RDMA reaches there, see
    /// [`addrinfo::resolve`](crate::addrinfo::resolve). The hints have the deadline.
    ///
    /// The node's [executor](super::NodeOptions::executor) runs it; the deadline counts from the call,
    /// also while the executor is busy. After the future is dropped, it goes on until the deadline.
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
        // By the system's clock, which is the only one that name servers know.
        let until = hints.until(Instant::now());
        let of_task = hints
            .clone()
            .deadline(until.map_or(Deadline::Never, Deadline::At));
        let resolver = self.resolver.clone();
        let task = move || resolver.resolve(host.as_deref(), service.as_deref(), &of_task);
        let until = hints.until(self.event_loop.now());
        match spawn_blocking(&self.event_loop, until, LATENESS, task).await {
            Ok(found) => found.unwrap_or_else(|lost| Err(lost.into())),
            Err(Error::DeadlinePassed) => Err(addrinfo::Error::LookupDeadline),
            Err(error) => Err(error.into()),
        }
    }
}
