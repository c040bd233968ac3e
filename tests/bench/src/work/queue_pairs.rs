//! Queue pairs that are made and dropped while others exist.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use rdmacm_core::{EventChannel, EventKind, PortSpace, QpType};
use rdmacm_verbs::{CompletionQueue, Context, ProtectionDomain, QpCaps, QueuePair};

use super::{PeerKind, Target, Workload};
use crate::meter::Meter;

const TIMEOUT: Duration = Duration::from_secs(10);
const PORT: u16 = 7471;

pub(super) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "queue-pair-100",
        peer: PeerKind::None,
        run: |target, count, meter| queue_pairs(target, count, meter, 100),
    },
    Workload {
        name: "queue-pair-1000",
        peer: PeerKind::None,
        run: |target, count, meter| queue_pairs(target, count, meter, 1_000),
    },
    Workload {
        name: "queue-pair-10000",
        peer: PeerKind::None,
        run: |target, count, meter| queue_pairs(target, count, meter, 10_000),
    },
];

const CAPS: QpCaps = QpCaps {
    max_send_wr: 16,
    max_recv_wr: 16,
    max_send_sge: 1,
    max_recv_sge: 1,
    max_inline_data: 0,
};

/// Makes a queue pair with a completion queue of its own, and drops both, while `live` others
/// exist.
fn queue_pairs(target: Target, count: u32, meter: &mut Meter, live: usize) -> anyhow::Result<()> {
    let context = open(target)?;
    let domain = context.create_protection_domain()?;
    let others: Vec<_> = (0..live)
        .map(|_| create(&context, &domain))
        .collect::<Result<_, _>>()?;
    let one = || create(&context, &domain).map(drop);
    meter.section(count.into(), || (0..count).try_for_each(|_| one()))?;
    ensure!(others.len() == live, "the others exist");
    Ok(())
}

fn create(context: &Context, domain: &ProtectionDomain) -> rdmacm_verbs::Result<QueuePair> {
    let entries = CAPS.max_send_wr + CAPS.max_recv_wr;
    let completions = CompletionQueue::options(entries).create(context)?;
    QueuePair::options(QpType::RC)
        .caps(CAPS)
        .protection_domain(domain)
        .send_cq(&completions)
        .recv_cq(&completions)
        .create(context)
}

/// Opens the device of the address.
fn open(target: Target) -> anyhow::Result<Context> {
    let channel = EventChannel::open()?;
    let id = channel.create_id(PortSpace::TCP)?;
    id.resolve_addr(None, (target.address, PORT), TIMEOUT)?;
    let event = channel.next_event(None)?;
    ensure!(event.kind() == EventKind::AddrResolved, "{event:?}");
    let device = id.addresses()?.device.context("a device")?;
    Ok(Context::open_by_id(device)?)
}
