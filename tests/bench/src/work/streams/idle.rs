//! Streams that carry nothing.

use anyhow::Context as _;
use rdmacm::{CLOSE_DEADLINE, Connector, Node, RdmaStream, StreamOptions};

use super::transfer;
use crate::meter::Meter;
use crate::work::{PeerKind, Target, Workload};

pub(in crate::work) const WORKLOADS: &[Workload] = &[
    workload("idle-streams", |target, count, meter| {
        idle(target, count, meter, &StreamOptions::new())
    }),
    workload("idle-streams-small", |target, count, meter| {
        idle(target, count, meter, &small())
    }),
    workload("idle-streams-shared", |target, count, meter| {
        idle(target, count, meter, &small().shared_receives(256))
    }),
    workload("idle-streams-1000", |target, count, meter| {
        idle(target, count, meter, &small())
    }),
];

const fn workload(
    name: &'static str,
    run: fn(Target, u32, &mut Meter) -> anyhow::Result<()>,
) -> Workload {
    Workload {
        name,
        peer: PeerKind::StreamEcho,
        run,
    }
}

/// About as small as those of C may be. What is received has room in one page, with the table of
/// announcements.
fn small() -> StreamOptions {
    let options = StreamOptions::new().receive_buffer(4064).send_buffer(4096);
    options.receives(16).sends(16)
}

/// Beside one that keeps the device open. One of them still answers then.
fn idle(
    target: Target,
    count: u32,
    meter: &mut Meter,
    options: &StreamOptions,
) -> anyhow::Result<()> {
    let node = Node::open()?;
    let connect = || -> anyhow::Result<RdmaStream> {
        let connector = Connector::new((target.address, target.port));
        let connector = connector.with_node(&node);
        Ok(connector.connect_stream(options.clone())?)
    };
    let first = connect()?;
    let mut streams = Vec::with_capacity(count as usize);
    meter.section(count.into(), || -> anyhow::Result<()> {
        for _ in 0..count {
            streams.push(connect()?);
        }
        Ok(())
    })?;
    let middle = streams.get(streams.len() / 2).context("a stream")?;
    transfer::round_trip(middle)?;
    for stream in streams.into_iter().chain([first]) {
        stream.close(CLOSE_DEADLINE)?;
    }
    Ok(())
}
