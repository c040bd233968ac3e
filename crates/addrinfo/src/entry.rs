//! From what is known of addresses to what the kernel says of them.

use std::time::Instant;

use rdmacm_core::{CmAddr, EventChannel, Family};

use crate::addr_info::AddrInfo;
use crate::ask::{Answer, Inquiry};
use crate::devices::Devices;
use crate::error::Result;
use crate::flags::AddrInfoFlags;
use crate::hints::Hints;
use crate::kind::Kind;
use crate::lead::Lead;
use crate::native;

/// The kernel's word on every lead by `until`, counted by the channel's clock:
/// first those that it reaches.
pub(crate) fn entries(
    leads: Vec<Lead>,
    hints: &Hints,
    kind: Kind,
    until: Option<Instant>,
    channel: &EventChannel,
) -> Result<Vec<AddrInfo>> {
    let inquiry = Inquiry {
        channel,
        kind,
        with_routes: !hints.flags.contains(AddrInfoFlags::NOROUTE),
        until,
    };
    let answers = answers(&inquiry, &leads, hints)?;
    let asked: Vec<_> = leads.iter().map(Lead::asked_source).collect();
    let answered = leads.into_iter().zip(answers);
    let entry = |(lead, answer)| entry(lead, answer, hints, kind);
    let mut list: Vec<_> = answered.map(entry).collect();
    Devices::of(channel).complete(&mut list);
    // The kernel chose a source before it came out that it leads nowhere.
    for (info, asked) in list.iter_mut().zip(asked) {
        if !info.is_reachable() && info.destination.is_some() {
            info.source = asked;
        }
    }
    let mut list = native::introduced(list);
    // Stable: each group keeps the order of the names.
    list.sort_by_key(|info| !info.is_reachable());
    Ok(list)
}

fn answers(inquiry: &Inquiry<'_>, leads: &[Lead], hints: &Hints) -> Result<Vec<Answer>> {
    if hints.is_passive() {
        let answers = leads.iter().map(|lead| inquiry.local(lead.address));
        return Ok(answers.collect::<Result<_, _>>()?);
    }
    Ok(inquiry.destinations(leads)?)
}

fn entry(lead: Lead, answer: Answer, hints: &Hints, kind: Kind) -> AddrInfo {
    let address = lead.address;
    let (source, destination) = if hints.is_passive() {
        (Some(address), None)
    } else {
        (outgoing_source(&answer, &lead), Some(address))
    };
    AddrInfo {
        flags: hints.flags,
        family: address.family(),
        qp_type: kind.qp_type,
        port_space: kind.port_space,
        source,
        destination,
        canonical_name: lead.canonical_name,
        route: lead.route,
        connect_data: Vec::new(),
        reach: answer.map(|found| found.route),
    }
}

/// The kernel's choice with the caller's port: the port the kernel gave the
/// question's id went with that id. A link-local source gets its destination's
/// scope, which the kernel leaves out and nobody can do without. A native
/// address says more than the kernel does of it.
fn outgoing_source(answer: &Answer, lead: &Lead) -> Option<CmAddr> {
    let Ok(found) = answer else {
        return lead.asked_source();
    };
    if lead.address.family() == Family::Ib && lead.source.is_some() {
        return lead.source;
    }
    let port = lead.source.map_or(0, |source| source.port());
    let source = found.source?.with_port(port);
    match source {
        CmAddr::V6(mut v6) if source.is_link_local() && v6.scope_id() == 0 => {
            v6.set_scope_id(lead.address.scope_id());
            Some(v6.into())
        }
        source => Some(source),
    }
}
