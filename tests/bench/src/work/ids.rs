//! Ids and their events.

use std::time::Duration;

use anyhow::{bail, ensure};
use rdmacm_addrinfo::{Hints, resolve};
use rdmacm_core::{CmId, EventChannel, EventKind, PortSpace};

use super::{PeerKind, Target, Workload};
use crate::meter::Meter;

const TIMEOUT: Duration = Duration::from_secs(10);
const PORT: u16 = 7471;

pub(super) const WORKLOADS: &[Workload] = &[
    workload("id", id),
    workload("id-create", create),
    workload("id-destroy", destroy),
    workload("event", event),
    workload("idle-ids", idle),
    workload("resolve-numeric", resolve_numeric),
    workload("id-at-10", |target, count, meter| {
        beside(target, 10, count, meter)
    }),
    workload("id-at-100", |target, count, meter| {
        beside(target, 100, count, meter)
    }),
    workload("id-at-1000", |target, count, meter| {
        beside(target, 1_000, count, meter)
    }),
    workload("id-at-10000", |target, count, meter| {
        beside(target, 10_000, count, meter)
    }),
];

const fn workload(
    name: &'static str,
    run: fn(Target, u32, &mut Meter) -> anyhow::Result<()>,
) -> Workload {
    Workload {
        name,
        peer: PeerKind::None,
        run,
    }
}

fn expect(channel: &EventChannel, kind: EventKind) -> anyhow::Result<()> {
    // Not moved, which would count.
    match &channel.next_event(None) {
        Ok(event) if event.kind() == kind => Ok(()),
        other => bail!("{other:?} instead of {kind:?}"),
    }
}

/// Creates an id, resolves its address and route, and destroys it.
fn id(target: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    beside(target, 0, count, meter)
}

/// The same beside `live` idle ids of the channel.
fn beside(target: Target, live: u32, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let channel = EventChannel::open()?;
    let idle = (0..live).map(|_| channel.create_id(PortSpace::TCP));
    let idle = idle.collect::<Result<Vec<CmId>, _>>()?;
    let one = || -> anyhow::Result<()> {
        let id = channel.create_id(PortSpace::TCP)?;
        id.resolve_addr(None, (target.address, PORT), TIMEOUT)?;
        expect(&channel, EventKind::AddrResolved)?;
        id.resolve_route(TIMEOUT)?;
        expect(&channel, EventKind::RouteResolved)
    };
    one()?;
    meter.section(count.into(), || (0..count).try_for_each(|_| one()))?;
    drop(idle);
    Ok(())
}

fn create(_: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let channel = EventChannel::open()?;
    drop(channel.create_id(PortSpace::TCP)?);
    for _ in 0..count {
        let id = meter.section(1, || channel.create_id(PortSpace::TCP))?;
        drop(id);
    }
    Ok(())
}

fn destroy(_: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let channel = EventChannel::open()?;
    drop(channel.create_id(PortSpace::TCP)?);
    for _ in 0..count {
        let id = channel.create_id(PortSpace::TCP)?;
        meter.section(1, || drop(id));
    }
    Ok(())
}

/// One event, from the descriptor to an owned value.
fn event(target: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let channel = EventChannel::open()?;
    for _ in 0..count {
        let id = channel.create_id(PortSpace::TCP)?;
        id.resolve_addr(None, (target.address, PORT), TIMEOUT)?;
        channel.wait(None)?;
        let event = meter.section(1, || channel.next_event(None))?;
        ensure!(event.kind() == EventKind::AddrResolved, "{event:?}");
    }
    Ok(())
}

/// Ids that were created, and do nothing.
fn idle(_: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let channel = EventChannel::open()?;
    drop(channel.create_id(PortSpace::TCP)?);
    let mut ids: Vec<CmId> = Vec::with_capacity(count as usize);
    meter.section(count.into(), || -> anyhow::Result<()> {
        for _ in 0..count {
            ids.push(channel.create_id(PortSpace::TCP)?);
        }
        Ok(())
    })
}

/// A numeric address, with a channel of its own, its address and its route.
fn resolve_numeric(target: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let node = target.address.to_string();
    let hints = Hints::rc();
    let one = || -> anyhow::Result<()> {
        let found = resolve(&*node, "7471", &hints)?;
        ensure!(found.len() == 1, "{found:?}");
        Ok(())
    };
    one()?;
    meter.section(count.into(), || (0..count).try_for_each(|_| one()))
}
