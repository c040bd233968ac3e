//! Makes the list of results from targets and what the kernel resolved.

use std::mem;

use rdmacm_core::{CmAddr, Family};

use crate::addr_info::AddrInfo;
use crate::channel_source::ResolutionChannel;
use crate::error::Result;
use crate::flags::AddrInfoFlags;
use crate::hints::Hints;
use crate::kind::Kind;
use crate::native;
use crate::probe_target::ProbeTarget;
use crate::prober::{Probe, Prober, TimeLimit};
use crate::route::DevicePort;
use crate::transports::Transports;

/// Resolves every target, and lists those on a device, if one is given, or all. The reachable ones
/// come first. Leaves the targets without name, paths and route.
pub(crate) fn entries(
    targets: &mut [ProbeTarget],
    hints: &Hints,
    kind: Kind,
    device: Option<&str>,
    limit: TimeLimit,
    channel: &ResolutionChannel,
) -> Result<Vec<AddrInfo>> {
    let prober = Prober {
        channel,
        kind,
        with_routes: !hints.flags.contains(AddrInfoFlags::NOROUTE),
        limit,
    };
    if hints.is_passive() {
        for target in &mut *targets {
            target.state = prober.local(target.address)?;
        }
    } else {
        prober.destinations(targets)?;
    }
    let mut list = Vec::with_capacity(targets.len());
    let mut transports = Transports::default();
    for target in targets {
        // Made in place: a result is long.
        list.push(entry(target, hints, kind));
        if let Some(info) = list.last_mut() {
            if device.is_none_or(|device| is_on(info, device)) {
                check_transport(info, target, &mut transports);
            } else {
                list.pop();
            }
        }
    }
    Ok(if list.len() > 1 { in_order(list) } else { list })
}

fn is_on(info: &AddrInfo, device: &str) -> bool {
    let found = info.device_port().and_then(DevicePort::rdma_device);
    found.is_some_and(|found| found.name == device)
}

/// Completes the list, and puts the reachable ones first.
fn in_order(list: Vec<AddrInfo>) -> Vec<AddrInfo> {
    let mut list = native::with_connect_data(list);
    // Stable: each group keeps the order of the names.
    list.sort_by_key(|info| !info.is_reachable());
    move_name_to_first(&mut list);
    list
}

/// Moves the canonical name to the first result. The name resolver has given it to the first
/// address, and ibacm's native address shares it.
fn move_name_to_first(list: &mut [AddrInfo]) {
    let names = list.iter_mut().map(|info| info.canonical_name.take());
    let names: Vec<_> = names.flatten().collect();
    if let Some(first) = list.first_mut() {
        first.canonical_name = names.into_iter().next();
    }
}

/// The result for a target, whose name, paths and route it takes.
fn entry(target: &mut ProbeTarget, hints: &Hints, kind: Kind) -> AddrInfo {
    let address = target.address;
    let (source, destination) = if hints.is_passive() {
        (Some(address), None)
    } else {
        (outgoing_source(target), Some(address))
    };
    AddrInfo {
        flags: hints.flags,
        family: address.family(),
        qp_type: kind.qp_type,
        port_space: kind.port_space,
        source,
        destination,
        canonical_name: target.canonical_name.take(),
        paths: mem::take(&mut target.paths),
        connect_data: Vec::new(),
        route: target.state.take_route(),
    }
}

/// Makes a result unreachable if that depends on the transport of its device.
fn check_transport(info: &mut AddrInfo, target: &ProbeTarget, transports: &mut Transports) {
    if let Err(reason) = transports.check(info) {
        info.route = Err(reason);
        // The kernel chose a source, which does not count.
        if info.destination.is_some() {
            info.source = target.asked_source();
        }
    }
}

/// The source that the kernel chose, with the caller's port: the port of the probe's id
/// is gone with the id. A link-local source gets the scope of its destination, which the
/// kernel leaves out. A native address holds more than the kernel returns of it.
fn outgoing_source(target: &ProbeTarget) -> Option<CmAddr> {
    let Probe::Done(Ok(found)) = &target.state else {
        return target.asked_source();
    };
    if target.address.family() == Family::Ib && target.source.is_some() {
        return target.source;
    }
    let port = target.source.map_or(0, |source| source.port());
    let source = found.source?.with_port(port);
    match source {
        CmAddr::V6(mut v6) if source.is_link_local() && v6.scope_id() == 0 => {
            v6.set_scope_id(target.address.scope_id());
            Some(v6.into())
        }
        source => Some(source),
    }
}
