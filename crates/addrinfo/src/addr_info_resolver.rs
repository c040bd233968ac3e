//! Resolving with a name resolver, ibacm and channels of one's own.

use std::slice;
use std::sync::Arc;
use std::time::Instant;

use rdmacm_core::{CmAddr, Deadline, EventChannel, PortSpace};

use crate::acm::{Acm, SingleUseAcm};
use crate::addr_info::AddrInfo;
use crate::candidate::{
    candidates, check, check_hints, check_texts, kind_of_service, literal, local_candidates,
};
use crate::channel_source::ChannelSource;
use crate::entry::entries;
use crate::error::{Error, NameError, Result};
use crate::hints::Hints;
use crate::kind::Kind;
use crate::local::Local;
use crate::lookup_limit::LookupLimits;
use crate::names::{NameResolver, ResolverContext};
use crate::native;
use crate::probe_target::{ProbeTarget, advise};
use crate::prober::TimeLimit;
use crate::services;

/// Resolves names to RDMA addresses with a [`NameResolver`], ibacm and the kernel; keep one if you
/// resolve often.
///
/// One value serves any number of threads, and clones share its state;
/// [`resolve`](crate::resolve) makes one for each call. At most 64 name lookups run at once,
/// including those that continue after their caller's deadline; others wait until one ends or their
/// deadline passes.
#[derive(Clone, Debug)]
pub struct AddrInfoResolver {
    /// `None` for the system's.
    name_resolver: Option<Arc<dyn NameResolver>>,
    pub(crate) limits: LookupLimits,
    acm: AcmSource,
    channels: ChannelSource,
}

/// The ibacm that an [`AddrInfoResolver`] queries.
#[derive(Clone, Debug)]
enum AcmSource {
    None,
    /// That of `/run`, by a client for each resolution.
    SingleUse,
    Client(Acm),
}

impl Default for AddrInfoResolver {
    fn default() -> Self {
        Self::new()
    }
}

impl AddrInfoResolver {
    /// Creates one with the system's name resolver and the ibacm of `/run`, if there is
    /// one.
    #[must_use]
    pub fn new() -> Self {
        Self {
            name_resolver: None,
            limits: LookupLimits::default(),
            acm: AcmSource::Client(Acm::new()),
            channels: ChannelSource::default(),
        }
    }

    /// As [`new`](Self::new), for one resolution: it remembers nothing of ibacm.
    pub(crate) fn for_one_resolution() -> Self {
        Self {
            name_resolver: None,
            limits: LookupLimits::default(),
            acm: AcmSource::SingleUse,
            channels: ChannelSource::default(),
        }
    }

    /// Uses this name resolver for the names of hosts and services instead of the system's.
    #[must_use]
    pub fn name_resolver(mut self, resolver: impl NameResolver + 'static) -> Self {
        self.name_resolver = Some(Arc::new(resolver));
        self
    }

    /// Opens event channels by this function instead of [`EventChannel::open`]: with
    /// options, or on a simulated device.
    #[must_use]
    pub fn channels(
        mut self,
        open: impl Fn() -> rdmacm_core::Result<EventChannel> + Send + Sync + 'static,
    ) -> Self {
        self.channels = ChannelSource::new(open);
        self
    }

    fn context(&self, until: Option<Instant>) -> ResolverContext<'_> {
        ResolverContext {
            resolver: self.name_resolver.as_ref(),
            limits: &self.limits,
            until,
        }
    }

    /// Queries this ibacm for paths; `None` queries none.
    #[must_use]
    pub fn acm(mut self, acm: impl Into<Option<Acm>>) -> Self {
        self.acm = acm.into().map_or(AcmSource::None, AcmSource::Client);
        self
    }

    /// Resolves a node and a service, see [`resolve`](crate::resolve). Opens an event
    /// channel.
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
        let kind = check_hints(node, service, hints)?;
        if hints.asks_administrator() {
            return self.find_service(node, service, hints);
        }
        let until = hints.deadline.until(Instant::now());
        if let Some(target) = &mut literal(node, service, hints) {
            return self.probe(slice::from_mut(target), hints, kind, None, until);
        }
        check_texts(node, service)?;
        let context = self.context(until);
        let kind = kind_of_service(kind, service, hints, context);
        let local = match node.filter(|_| hints.may_be_local()) {
            Some(node) => Local::named(node)?,
            None => None,
        };
        let mut candidates = match &local {
            Some(local) => local_candidates(local, service, hints, kind, context)?,
            None => candidates(node, service, hints, kind, context)?,
        };
        let device = match &local {
            Some(Local::Device(device)) => Some(device.as_ref()),
            _ => None,
        };
        let list = self.probe(&mut candidates, hints, kind, device, until)?;
        if list.is_empty() && device.is_some() {
            return Err(NameError::NoData.into());
        }
        Ok(list)
    }

    /// Returns every address of a node and a service, in the name resolver's order, without
    /// RDMA: it needs no device, and the node is a host name or a numeric address. The
    /// flags, the family and the deadline of the hints apply.
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
        let kind = check(node, service, hints)?;
        if hints.asks_administrator() {
            return Err(Error::Hints("only RDMA can look up an InfiniBand service"));
        }
        let context = self.context(hints.deadline.until(Instant::now()));
        let kind = kind_of_service(kind, service, hints, context);
        let candidates = candidates(node, service, hints, kind, context)?;
        Ok(candidates
            .into_iter()
            .map(|candidate| candidate.address)
            .collect())
    }

    /// Returns every IP address of this machine that RDMA serves, to listen on, with the
    /// port of a service. [`EventChannel::infiniband_ports`] lists the GIDs of InfiniBand
    /// ports. The list is empty if there is no RDMA device.
    ///
    /// # Errors
    /// Those of [`resolve`](crate::resolve); [`Error::Hints`] if the hints have a source.
    pub fn local<'name>(
        &self,
        service: impl Into<Option<&'name str>>,
        hints: &Hints,
    ) -> Result<Vec<AddrInfo>> {
        if hints.source.is_some() {
            return Err(Error::Hints("the addresses of this machine have no source"));
        }
        let hints = hints.clone().passive();
        let service = service.into();
        let kind = check(None, service.or(Some("0")), &hints)?;
        let until = hints.deadline.until(Instant::now());
        let context = self.context(until);
        let kind = kind_of_service(kind, service, &hints, context);
        let mut candidates = local_candidates(&Local::Machine, service, &hints, kind, context)?;
        let mut list = self.probe(&mut candidates, &hints, kind, None, until)?;
        // The kernel treats loopback as the wildcard, which has no device.
        list.retain(|info| info.device_port().is_some());
        Ok(list)
    }

    /// Resolves all candidates with ibacm and the kernel.
    fn probe(
        &self,
        targets: &mut [ProbeTarget],
        hints: &Hints,
        kind: Kind,
        device: Option<&str>,
        until: Option<Instant>,
    ) -> Result<Vec<AddrInfo>> {
        let channel = self.channels.open(until)?;
        let mut with_native = None;
        if !hints.is_passive() {
            self.advise(targets, hints, until);
            with_native = native::with_native_targets(targets, kind.port_space, &channel);
        }
        let targets = with_native.as_deref_mut().unwrap_or(targets);
        let until = until.and_then(|until| on_clock_of(&channel, until));
        let limit = TimeLimit::new(hints.deadline, until, || channel.now());
        entries(targets, hints, kind, device, limit, &channel)
    }

    /// Asks ibacm about the targets.
    fn advise(&self, targets: &mut [ProbeTarget], hints: &Hints, until: Option<Instant>) {
        match &self.acm {
            AcmSource::None => {}
            AcmSource::SingleUse => {
                let (acm, limit) = (SingleUseAcm::default(), SingleUseAcm::limit(until));
                advise(targets, hints, |request| acm.ask(request, &limit));
            }
            AcmSource::Client(acm) => {
                let limit = acm.limit(until);
                advise(targets, hints, |request| acm.ask(request, &limit));
            }
        }
    }

    /// Looks up an InfiniBand service, all of it on the channel's clock.
    fn find_service(
        &self,
        node: Option<&str>,
        service: Option<&str>,
        hints: &Hints,
    ) -> Result<Vec<AddrInfo>> {
        let service = services::wanted(node, service)?;
        let kind = Kind::new(Some(PortSpace::IB), hints.qp_type)?;
        let begun = Instant::now();
        let channel = self.channels.open(hints.deadline.until(begun))?;
        let is_of_system = channel.waits_by_descriptor();
        let begun = if is_of_system { begun } else { channel.now() };
        let until = hints.deadline.until(begun);
        let mut targets = services::find(&channel, service, until, &self.limits)?;
        // The kernel is given what is left.
        let deadline = until.map_or(Deadline::Never, Deadline::At);
        let limit = TimeLimit::new(deadline, until, || channel.now());
        entries(&mut targets, hints, kind, None, limit, &channel)
    }
}

/// A deadline of the system's clock, by which names are looked up, on the channel's.
fn on_clock_of(channel: &EventChannel, until: Instant) -> Option<Instant> {
    if channel.waits_by_descriptor() {
        return Some(until);
    }
    let left = until.saturating_duration_since(Instant::now());
    channel.now().checked_add(left)
}
