//! Whom names are asked of.

use std::time::Instant;

use rdmacm_core::{ChannelOptions, CmAddr, EventChannel, PortSpace};

use crate::addr_info::AddrInfo;
use crate::ask::{Answer, Inquiry};
use crate::candidate::{Candidate, candidates};
use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::flags::AddrInfoFlags;
use crate::hints::Hints;
use crate::kind::Kind;
use crate::names::Lookups;
use crate::services;

/// Resolves names, with a bounded number of lookups left behind by deadlines.
///
/// One value serves any number of threads; [`resolve`](crate::resolve) makes
/// one of its own for each call.
#[derive(Debug)]
pub struct Directory {
    lookups: Lookups,
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
            lookups: Lookups::new(),
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

    /// Every address a node and a service have, in the system's order. RDMA is
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
        hints.check()?;
        if hints.asks_administrator() {
            return Err(Error::Hints("only RDMA can ask for a service"));
        }
        let kind = Kind::new(hints.port_space, hints.qp_type)?;
        let until = hints.deadline.until(Instant::now());
        let (node, service) = (node.into(), service.into());
        let candidates = candidates(node, service, hints, kind, &self.lookups, until)?;
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
        hints.check()?;
        let (node, service) = (node.into(), service.into());
        if hints.asks_administrator() {
            let service = services::wanted(node, service)?;
            let kind = Kind::new(Some(PortSpace::IB), hints.qp_type)?;
            let channel = channel.open()?;
            let until = hints.deadline.until(channel.now());
            let candidates = services::find(&channel, service, until)?;
            return ask(&channel, kind, until, candidates, hints);
        }
        let kind = Kind::new(hints.port_space, hints.qp_type)?;
        let until = hints.deadline.until(Instant::now());
        let candidates = candidates(node, service, hints, kind, &self.lookups, until)?;
        let channel = channel.open()?;
        // The name server's time is the system's, the kernel's the channel's.
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let until = left.and_then(|left| channel.now().checked_add(left));
        ask(&channel, kind, until, candidates, hints)
    }
}

/// What the kernel says about the candidates, those first that it reaches.
fn ask(
    channel: &EventChannel,
    kind: Kind,
    until: Option<Instant>,
    candidates: Vec<Candidate>,
    hints: &Hints,
) -> Result<Vec<AddrInfo>> {
    let inquiry = Inquiry {
        channel,
        kind,
        with_routes: !hints.flags.contains(AddrInfoFlags::NOROUTE),
        until,
    };
    let answers = answers(&inquiry, &candidates, hints)?;
    let mut list: Vec<_> = candidates
        .into_iter()
        .zip(answers)
        .map(|(candidate, answer)| entry(candidate, answer, hints, kind))
        .collect();
    Devices::of(channel).complete(&mut list);
    // Stable: each group keeps the order of the names.
    list.sort_by_key(|info| !info.is_reachable());
    Ok(list)
}

fn answers(inquiry: &Inquiry<'_>, candidates: &[Candidate], hints: &Hints) -> Result<Vec<Answer>> {
    if hints.is_passive() {
        let answers = candidates
            .iter()
            .map(|candidate| inquiry.local(candidate.address));
        return Ok(answers.collect::<Result<_, _>>()?);
    }
    let ways = candidates
        .iter()
        .map(|candidate| (candidate.source.or(hints.source), candidate.address));
    Ok(inquiry.destinations(ways)?)
}

fn entry(candidate: Candidate, answer: Answer, hints: &Hints, kind: Kind) -> AddrInfo {
    let address = candidate.address;
    let (source, destination) = if hints.is_passive() {
        (Some(address), None)
    } else {
        let asked_for = candidate.source.or(hints.source);
        (outgoing_source(&answer, address, asked_for), Some(address))
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
fn outgoing_source(
    answer: &Answer,
    destination: CmAddr,
    asked_for: Option<CmAddr>,
) -> Option<CmAddr> {
    let port = asked_for.map_or(0, |source| source.port());
    let Ok(found) = answer else {
        return asked_for;
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
