//! Resolving addresses and routes.

use std::time::Duration;

use nix::errno::Errno;
use rdmacm_abi::{AddressFamily, Reserved, ResolveAddr, ResolveRoute};
use rdmacm_core::Gid;

use super::bind::bind_to;
use super::{Kernel, Outcome};
use crate::address::Address;
use crate::id::{Attached, Id, State};
use crate::machine::Machine;
use crate::subnet::PathQuery;
use crate::work::{self, Work};

/// `ucma_resolve_addr` and `rdma_resolve_addr`.
pub(super) fn address(kernel: &mut Kernel<'_>, request: &ResolveAddr) -> Outcome {
    let destination = Address::read(&request.destination, request.destination_size)?;
    if request.reserved != Reserved::ZERO {
        return Err(Errno::EINVAL);
    }
    // By its family the kernel knows whether there is a source.
    let source = match request.source_size {
        0 if request.source.family() == AddressFamily::UNSPEC => None,
        0 => {
            let size = request.source.size();
            let source = Address::read(&request.source, size);
            Some(source.map_err(|_| Errno::EAFNOSUPPORT)?)
        }
        size => Some(Address::read(&request.source, size)?),
    };
    kernel.machine.find(kernel.file, request.id)?;
    prepare(kernel.machine, request.id, source, destination)?;
    let resolved = if destination.is_any() {
        to_itself(kernel.machine, request.id)
    } else {
        to_peer(kernel.machine, request.id, &destination)
    };
    let id = kernel.machine.find(kernel.file, request.id)?;
    match resolved {
        Ok(gid) => {
            id.destination_gid = gid;
            id.state = State::AddrQuery;
            let place = (kernel.index, request.id);
            let outcome = work::Outcome::Address;
            Work::put_off(kernel.clock, Duration::ZERO, place, id, outcome);
            Ok(())
        }
        // It stays bound.
        Err(errno) => Err(errno),
    }
}

/// `resolve_prepare_src`.
fn prepare(
    machine: &mut Machine,
    number: u32,
    source: Option<Address>,
    destination: Address,
) -> Outcome {
    let id = machine.ids.get_mut(&number).ok_or(Errno::ENOENT)?;
    if id.state == State::AddrBound {
        id.destination = Some(destination);
    } else {
        let source = source.unwrap_or_else(|| destination.wildcard());
        bind_to(machine, number, source, Some(destination))?;
    }
    let id = machine.ids.get_mut(&number).ok_or(Errno::ENOENT)?;
    let family = id.source.map(|source| source.family());
    if family == Some(destination.family()) {
        Ok(())
    } else {
        Err(Errno::EINVAL)
    }
}

/// The destination's GID, with the id attached to a port that leads there.
fn to_peer(machine: &mut Machine, number: u32, destination: &Address) -> Result<Gid, Errno> {
    let Address::Ib(destination) = destination else {
        // Hosts have no IP addresses, so no route.
        return Err(Errno::ENETUNREACH);
    };
    let gid = Gid(destination.addr);
    let found = way_to(machine, gid, destination.pkey.get());
    let id = machine.ids.get_mut(&number).ok_or(Errno::ENOENT)?;
    if id.attached.is_none() {
        let (attached, own) = found.ok_or(Errno::ENODEV)?;
        id.attach(attached, own);
    }
    Ok(gid)
}

/// The first port in the destination's partition that has its GID, or is active
/// with a GID in its subnet (`cma_resolve_ib_dev`).
fn way_to(machine: &Machine, gid: Gid, pkey: u16) -> Option<(Attached, Gid)> {
    machine
        .ports()
        .filter(|(_, port)| port.is_in_partition(pkey))
        .find_map(|(attached, port)| {
            let leads = |own: &Gid| *own == gid || port.is_active && share_subnet(*own, gid);
            Some((attached, *port.gids.iter().find(|own| leads(own))?))
        })
}

/// The subnet is the first half of a GID.
fn share_subnet(one: Gid, other: Gid) -> bool {
    one.0
        .iter()
        .zip(other.0)
        .take(8)
        .all(|(one, other)| *one == other)
}

/// The loopback address leads to the first active port, or else to the first
/// (`cma_resolve_loopback`, `cma_bind_loopback`).
fn to_itself(machine: &mut Machine, number: u32) -> Result<Gid, Errno> {
    let active = machine.ports().find(|(_, port)| port.is_active);
    let found = active.or_else(|| machine.ports().next());
    let found = found.and_then(|(attached, port)| {
        let gid = port.gids.first().copied()?;
        Some((
            attached,
            gid,
            port.pkeys.first().copied().unwrap_or_default(),
        ))
    });
    let id = machine.ids.get_mut(&number).ok_or(Errno::ENOENT)?;
    if id.attached.is_none() {
        let (attached, gid, pkey) = found.ok_or(Errno::ENODEV)?;
        id.attached = Some(attached);
        (id.source_gid, id.pkey) = (gid, pkey);
        if let Some(Address::Ib(source)) = &mut id.source {
            source.addr = Gid::LOOPBACK.0;
        }
    }
    Ok(id.source_gid)
}

impl Id {
    /// Attaches the id to the port it starts from.
    fn attach(&mut self, attached: Attached, gid: Gid) {
        self.attached = Some(attached);
        self.source_gid = gid;
        if let Some(Address::Ib(source)) = &mut self.source {
            source.addr = gid.0;
            self.pkey = source.pkey.get();
        }
    }
}

/// `ucma_resolve_route`, `rdma_resolve_route` and `cma_query_ib_route`.
pub(super) fn route(kernel: &mut Kernel<'_>, request: ResolveRoute) -> Outcome {
    let id = kernel.machine.find_attached(kernel.file, request.id)?;
    let may = [State::AddrResolved, State::AddrInfoResolved].contains(&id.state);
    if request.timeout_ms == 0 || !may {
        return Err(Errno::EINVAL);
    }
    id.state = State::RouteQuery;
    let timeout = Duration::from_millis(request.timeout_ms.into());
    let (delay, path) = kernel.subnet.path(&id.path_query(), timeout);
    let place = (kernel.index, request.id);
    let outcome = work::Outcome::Route(path);
    Work::put_off(kernel.clock, delay, place, id, outcome);
    Ok(())
}

impl Id {
    fn path_query(&self) -> PathQuery {
        let flow_info = match self.source {
            Some(Address::Ib(source)) => source.flowinfo.get(),
            _ => 0,
        };
        let [high, low, ..] = flow_info.to_be_bytes();
        PathQuery {
            from: self.source_gid,
            to: self.destination_gid,
            pkey: self.pkey,
            service_id: self.service_id(self.destination),
            // Above the 20 bits of the flow label.
            traffic_class: high << 4 | low >> 4,
        }
    }
}
