//! Whom names are asked of.

use std::sync::Arc;
use std::time::Instant;

use rdmacm_core::{ChannelOptions, CmAddr, EventChannel};

use crate::addr_info::AddrInfo;
use crate::ask::{Answer, Inquiry};
use crate::candidate::{Candidate, candidates, check, kind, local_candidates};
use crate::devices::Devices;
use crate::error::{NameError, Result};
use crate::flags::AddrInfoFlags;
use crate::hints::Hints;
use crate::kind::Kind;
use crate::local::Local;
use crate::names::{Knowledge, Lookups, Resolver, SystemResolver};
use crate::places::Places;

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
}

impl Default for Directory {
    fn default() -> Self {
        Self::new()
    }
}

impl Directory {
    /// One that asks the system.
    #[must_use]
    pub fn new() -> Self {
        Self {
            resolver: Arc::new(SystemResolver),
            lookups: Lookups::default(),
            tasks: Places::default(),
        }
    }

    /// Asks this resolver for the names of hosts and services instead of the
    /// system.
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolver + 'static) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    fn knowledge(&self, until: Option<Instant>) -> Knowledge<'_> {
        Knowledge {
            resolver: &self.resolver,
            lookups: &self.lookups,
            until,
        }
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
        self.resolve_with(node, service, hints, EventChannel::options())
    }

    /// Every IP address a node and a service have, in the system's order. RDMA is
    /// not asked, so it takes no device; flags and families of the hints count,
    /// their deadline is for the name server.
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
        let knowledge = self.knowledge(hints.deadline.until(Instant::now()));
        let kind = kind(service, hints, knowledge)?;
        let candidates = candidates(node, service, hints, kind, knowledge)?;
        Ok(candidates
            .into_iter()
            .map(|candidate| candidate.address)
            .collect())
    }

    /// Resolves on a channel opened with these options: over another device, or
    /// in a given dialect.
    ///
    /// # Errors
    /// Those of [`resolve`](crate::resolve).
    pub fn resolve_with<'name>(
        &self,
        node: impl Into<Option<&'name str>>,
        service: impl Into<Option<&'name str>>,
        hints: &Hints,
        channel: ChannelOptions,
    ) -> Result<Vec<AddrInfo>> {
        let (node, service) = (node.into(), service.into());
        check(node, service, hints)?;
        let until = hints.deadline.until(Instant::now());
        let knowledge = self.knowledge(until);
        let kind = kind(service, hints, knowledge)?;
        let local = node.filter(|_| hints.is_passive()).and_then(Local::named);
        let candidates = match &local {
            Some(local) => local_candidates(local, service, hints, kind, knowledge)?,
            None => candidates(node, service, hints, kind, knowledge)?,
        };
        let mut list = inquire(candidates, hints, kind, until, channel)?;
        if let Some(Local::Device(device)) = &local {
            list.retain(|info| is_on(info, device));
            if list.is_empty() {
                return Err(NameError::NoData.into());
            }
        }
        Ok(list)
    }

    /// Every address of this machine that RDMA serves, to listen on, with the
    /// port of a service. Flags, port space and the like of the hints count, a
    /// node is not asked for. Empty where there is no RDMA device.
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
        let mut list = inquire(candidates, &hints, kind, until, EventChannel::options())?;
        // The kernel takes loopback for the wildcard, which has no device.
        list.retain(|info| info.via().is_some());
        Ok(list)
    }
}

/// Asks the kernel about all candidates.
fn inquire(
    candidates: Vec<Candidate>,
    hints: &Hints,
    kind: Kind,
    until: Option<Instant>,
    channel: ChannelOptions,
) -> Result<Vec<AddrInfo>> {
    let channel = channel.open()?;
    // The name server's time is the system's, the kernel's the channel's.
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let until = left.and_then(|left| channel.now().checked_add(left));
    let inquiry = Inquiry {
        channel: &channel,
        kind,
        with_routes: !hints.flags.contains(AddrInfoFlags::NOROUTE),
        until,
    };
    let answers = ask(&inquiry, &candidates, hints)?;
    let mut list: Vec<_> = candidates
        .into_iter()
        .zip(answers)
        .map(|(candidate, answer)| entry(candidate, answer, hints, kind))
        .collect();
    Devices::default().complete(&mut list);
    // The kernel chose a source before it came out that it leads nowhere.
    for info in list.iter_mut().filter(|info| !info.is_reachable()) {
        if info.destination.is_some() {
            info.source = hints.source;
        }
    }
    // Stable: each group keeps the order of the names.
    list.sort_by_key(|info| !info.is_reachable());
    Ok(list)
}

fn is_on(info: &AddrInfo, device: &str) -> bool {
    let via = info.via().and_then(|via| via.device_name.as_deref());
    via == Some(device)
}

fn ask(inquiry: &Inquiry<'_>, candidates: &[Candidate], hints: &Hints) -> Result<Vec<Answer>> {
    let addresses: Vec<_> = candidates
        .iter()
        .map(|candidate| candidate.address)
        .collect();
    if hints.is_passive() {
        let answers = addresses.into_iter().map(|address| inquiry.local(address));
        return Ok(answers.collect::<Result<_, _>>()?);
    }
    Ok(inquiry.destinations(hints.source, &addresses)?)
}

fn entry(candidate: Candidate, answer: Answer, hints: &Hints, kind: Kind) -> AddrInfo {
    let address = candidate.address;
    let (source, destination) = if hints.is_passive() {
        (Some(address), None)
    } else {
        (outgoing_source(&answer, address, hints), Some(address))
    };
    AddrInfo {
        flags: hints.flags,
        family: address.family(),
        qp_type: kind.qp_type,
        port_space: kind.port_space,
        source,
        destination,
        canonical_name: candidate.canonical_name,
        connect_data: Vec::new(),
        reach: answer.map(|found| found.route),
    }
}

/// The kernel's choice with the caller's port: the port the kernel gave the
/// question's id went with that id. A link-local source gets its destination's
/// scope, which the kernel leaves out and nobody can do without.
fn outgoing_source(answer: &Answer, destination: CmAddr, hints: &Hints) -> Option<CmAddr> {
    let port = hints.source.map_or(0, |source| source.port());
    let Ok(found) = answer else {
        return hints.source;
    };
    let source = found.source?.with_port(port);
    match source {
        CmAddr::V6(mut v6) if source.is_link_local() && v6.scope_id() == 0 => {
            v6.set_scope_id(destination.scope_id());
            Some(v6.into())
        }
        source => Some(source),
    }
}
