//! Whom names are asked of.

use std::sync::Arc;
use std::time::Instant;

use rdmacm_core::{CmAddr, EventChannel, PortSpace};

use crate::acm::Acm;
use crate::addr_info::AddrInfo;
use crate::candidate::{Candidate, candidates, check, kind, local_candidates};
use crate::channels::Channels;
use crate::entry::entries;
use crate::error::{Error, NameError, Result};
use crate::hints::Hints;
use crate::kind::Kind;
use crate::lead::leads;
use crate::local::Local;
use crate::names::{Knowledge, Lookups, Resolver, SystemResolver};
use crate::native;
use crate::places::Places;
use crate::services;

/// What names are asked of: a [`Resolver`], and the kernel.
///
/// One value serves any number of threads, and its clones are handles to the
/// same; [`resolve`](crate::resolve) makes one of its own for each call. What
/// deadlines leave behind is bounded: 64 lookups that wait for a server.
#[derive(Clone, Debug)]
pub struct Directory {
    resolver: Arc<dyn Resolver>,
    lookups: Lookups,
    pub(crate) tasks: Places,
    acm: Option<Acm>,
    channels: Channels,
}

impl Default for Directory {
    fn default() -> Self {
        Self::new()
    }
}

impl Directory {
    /// One that asks the system for names and ibacm, if there is one in `/run`,
    /// for paths.
    #[must_use]
    pub fn new() -> Self {
        Self {
            resolver: Arc::new(SystemResolver),
            lookups: Lookups::default(),
            tasks: Places::default(),
            acm: Some(Acm::new()),
            channels: Channels::default(),
        }
    }

    /// Asks this resolver for the names of hosts and services instead of the
    /// system.
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolver + 'static) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// Asks the kernel on channels that are opened so: over another device, or in a
    /// given dialect.
    #[must_use]
    pub fn channels(
        mut self,
        open: impl Fn() -> rdmacm_core::Result<EventChannel> + Send + Sync + 'static,
    ) -> Self {
        self.channels = Channels::new(open);
        self
    }

    fn knowledge(&self, until: Option<Instant>) -> Knowledge<'_> {
        Knowledge {
            resolver: &self.resolver,
            lookups: &self.lookups,
            until,
        }
    }

    /// Asks another ibacm for paths, or `None`.
    #[must_use]
    pub fn acm(mut self, acm: impl Into<Option<Acm>>) -> Self {
        self.acm = acm.into();
        self
    }

    /// Resolves on a channel of its own, see [`resolve`](crate::resolve).
    ///
    /// # Errors
    /// Those of [`resolve`](crate::resolve).
    pub fn resolve<'name>(
        &self,
        node: impl Into<Option<&'name str>>,
        service: impl Into<Option<&'name str>>,
        hints: &Hints,
    ) -> Result<Vec<AddrInfo>> {
        let (node, service) = (node.into(), service.into());
        check(node, service, hints)?;
        if hints.asks_administrator() {
            return self.find_service(node, service, hints);
        }
        let until = hints.deadline.until(Instant::now());
        let knowledge = self.knowledge(until);
        let kind = kind(service, hints, knowledge)?;
        let local = node.filter(|_| hints.may_be_local()).and_then(Local::named);
        let candidates = match &local {
            Some(local) => local_candidates(local, service, hints, kind, knowledge)?,
            None => candidates(node, service, hints, kind, knowledge)?,
        };
        let mut list = self.inquire(candidates, hints, kind, until)?;
        if let Some(Local::Device(device)) = &local {
            list.retain(|info| is_on(info, device));
            if list.is_empty() {
                return Err(NameError::NoData.into());
            }
        }
        Ok(list)
    }

    /// Every address a node and a service have, in the resolver's order. RDMA is
    /// not asked, so it takes no device, and the node is a host's name or figures,
    /// nothing of this machine's; flags and families of the hints count, their
    /// deadline is for the name server.
    ///
    /// # Errors
    /// Those of [`resolve`](crate::resolve), but [`Error::Rdma`](crate::Error::Rdma).
    pub fn addresses<'name>(
        &self,
        node: impl Into<Option<&'name str>>,
        service: impl Into<Option<&'name str>>,
        hints: &Hints,
    ) -> Result<Vec<CmAddr>> {
        let (node, service) = (node.into(), service.into());
        check(node, service, hints)?;
        if hints.asks_administrator() {
            return Err(Error::Hints("only RDMA can ask for a service"));
        }
        let knowledge = self.knowledge(hints.deadline.until(Instant::now()));
        let kind = kind(service, hints, knowledge)?;
        let candidates = candidates(node, service, hints, kind, knowledge)?;
        Ok(candidates
            .into_iter()
            .map(|candidate| candidate.address)
            .collect())
    }

    /// Every IP address of this machine that RDMA serves, to listen on, with the
    /// port of a service; the GIDs of InfiniBand's ports are
    /// [`EventChannel::infiniband_ports`]. Flags, port space and the like of the hints
    /// count, a node is not asked for. Empty where there is no RDMA device.
    ///
    /// # Errors
    /// Those of [`resolve`](crate::resolve).
    pub fn local<'name>(
        &self,
        service: impl Into<Option<&'name str>>,
        hints: &Hints,
    ) -> Result<Vec<AddrInfo>> {
        let hints = hints.clone().passive();
        let service = service.into();
        check(None, service.or(Some("0")), &hints)?;
        let until = hints.deadline.until(Instant::now());
        let knowledge = self.knowledge(until);
        let kind = kind(service, &hints, knowledge)?;
        let candidates = local_candidates(&Local::Machine, service, &hints, kind, knowledge)?;
        let mut list = self.inquire(candidates, &hints, kind, until)?;
        // The kernel takes loopback for the wildcard, which has no device.
        list.retain(|info| info.via().is_some());
        Ok(list)
    }

    /// Asks ibacm, and then the kernel, about all candidates.
    fn inquire(
        &self,
        candidates: Vec<Candidate>,
        hints: &Hints,
        kind: Kind,
        until: Option<Instant>,
    ) -> Result<Vec<AddrInfo>> {
        let channel = self.channels.open()?;
        let acm = self.acm.as_ref().filter(|_| !hints.is_passive());
        let leads = leads(candidates, hints, acm.map(|acm| (acm, acm.limit(until))));
        let leads = native::beside(leads, kind.port_space, &channel);
        // The name server's time is the system's, the kernel's the channel's.
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let until = left.and_then(|left| channel.now().checked_add(left));
        entries(leads, hints, kind, until, &channel)
    }

    /// Asks the subnet administrators, who are in the kernel's care all along.
    fn find_service(
        &self,
        node: Option<&str>,
        service: Option<&str>,
        hints: &Hints,
    ) -> Result<Vec<AddrInfo>> {
        let service = services::wanted(node, service)?;
        let kind = Kind::new(Some(PortSpace::IB), hints.qp_type)?;
        let channel = self.channels.open()?;
        let until = hints.deadline.until(channel.now());
        let candidates = services::find(&channel, service, until)?;
        entries(leads(candidates, hints, None), hints, kind, until, &channel)
    }
}

fn is_on(info: &AddrInfo, device: &str) -> bool {
    let via = info.via().and_then(|via| via.device_name.as_deref());
    via == Some(device)
}
