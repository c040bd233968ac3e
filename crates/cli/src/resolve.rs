//! `rdmacm resolve`.

use std::path::Path;
use std::time::Instant;

use rdmacm::addrinfo::{Acm, AddrInfo, AddrInfoResolver, Error, Hints, ResolveAddrInfo, Result};
use rdmacm::core::{ChannelOptions, CmId, Deadline, EventChannel, IbAddr, PortSpace, RdmaDevice};

use crate::args::{ResolveArgs, usage_error};
use crate::devices::NO_DEVICE;
use crate::outcome::Outcome;

mod document;
mod listing;
mod route;
#[cfg(test)]
mod schema;

use document::Document;

pub(crate) fn run(args: &ResolveArgs) -> Outcome {
    if let Some(contradiction) = args.contradiction() {
        usage_error(&contradiction);
    }
    let answer = resolve(args).map_err(|error| error.to_string());
    let answer = answer.and_then(|candidates| {
        let is_empty = candidates.is_empty();
        (!is_empty).then_some(candidates).ok_or_else(no_candidates)
    });
    let reachable = answer
        .as_ref()
        .is_ok_and(|candidates| candidates.iter().any(AddrInfo::is_reachable));
    let output = match (&answer, args.json) {
        (answer, true) => Document::new(args, answer).render(),
        (Ok(candidates), false) => listing::render(args, candidates),
        (Err(_), false) => String::new(),
    };
    let error_text = match &answer {
        Err(_) if args.json => None,
        Err(error) => Some(error.clone()),
        Ok(candidates) => args
            .acm
            .as_deref()
            .and_then(|acm| pathless(acm, candidates)),
    };
    Outcome {
        output,
        error_text,
        success: reachable,
    }
}

fn resolve(args: &ResolveArgs) -> Result<Vec<AddrInfo>> {
    let resolver = match &args.acm {
        Some(rundir) => AddrInfoResolver::new().acm(Acm::with_rundir(rundir)),
        None => AddrInfoResolver::new(),
    };
    let hints = args.hints();
    let (node, service) = match &args.sa {
        Some(service) => (None, Some(service.as_str())),
        None => (args.node.as_deref(), args.service.as_deref()),
    };
    match (args.local, args.by_event) {
        (true, _) => resolver.local(None, &hints),
        (false, true) => by_event(args, &resolver, node, service, &hints),
        (false, false) => resolver.resolve(node, service, &hints),
    }
}

/// Resolves by event, as an event loop would.
fn by_event(
    args: &ResolveArgs,
    resolver: &AddrInfoResolver,
    node: Option<&str>,
    service: Option<&str>,
    hints: &Hints,
) -> Result<Vec<AddrInfo>> {
    let until = Instant::now().checked_add(args.timeout());
    let until = until.map_or(Deadline::Never, Deadline::At);
    let patience = ChannelOptions::DEFAULT_DEVICE_NODE_TIMEOUT.min(args.timeout());
    let options = EventChannel::options().device_node_timeout(patience);
    let channel = options.open()?;
    let hints = hints.clone().deadline(until);
    let id = if hints.asks_administrator() {
        id_on_infiniband(&channel)?
    } else {
        channel.create_id(PortSpace::TCP)?
    };
    // Name lookups end at the deadline of the hints. The kernel has no deadline for
    // services.
    let until = match args.sa {
        Some(_) => until,
        None => Deadline::Never,
    };
    let mut resolution = id.resolve_addrinfo(resolver, node, service, &hints)?;
    loop {
        channel.next_event(until)?;
        match resolution.take_result() {
            Err(Error::NothingResolved) => {}
            answer => return answer,
        }
    }
}

/// The kernel asks the subnet administrator of the port that this id is bound to.
fn id_on_infiniband(channel: &EventChannel) -> Result<CmId> {
    let ports = channel.infiniband_ports()?;
    let port = ports.first().ok_or(Error::NoInfinibandPort)?;
    let id = channel.create_id(PortSpace::IB)?;
    id.bind(IbAddr::new(port.gid))?;
    Ok(id)
}

/// Why no local address is served.
fn no_candidates() -> String {
    let has_device = RdmaDevice::list().is_ok_and(|devices| !devices.is_empty());
    let reason = if has_device {
        "no RDMA device serves an address of this machine, with these options: it serves those of its \
         network interface"
    } else {
        NO_DEVICE
    };
    reason.to_owned()
}

/// The notice if ibacm was to supply a path and did not.
fn pathless(acm: &Path, candidates: &[AddrInfo]) -> Option<String> {
    let none = candidates.iter().all(|info| info.paths.is_empty());
    none.then(|| {
        format!(
            "ibacm in {} knows no path there, or is not running",
            acm.display()
        )
    })
}
