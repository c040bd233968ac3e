//! The same by TCP.

use std::net::TcpStream;

use anyhow::Context as _;

use super::transfer::{self, KIB_64, MIB, SMALL};
use crate::meter::Meter;
use crate::work::{PeerKind, Target, Workload};

pub(in crate::work) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "tcp-round-trip",
        peer: PeerKind::TcpEcho,
        run: |target, count, meter| transfer::round_trips(&connect(target)?, count, meter),
    },
    Workload {
        name: "tcp-64",
        peer: PeerKind::TcpSink,
        run: |target, count, meter| transfer::messages(&connect(target)?, SMALL, count, meter),
    },
    Workload {
        name: "tcp-64k",
        peer: PeerKind::TcpSink,
        run: |target, count, meter| transfer::writes(&connect(target)?, KIB_64, count, meter),
    },
    Workload {
        name: "tcp-1m",
        peer: PeerKind::TcpSink,
        run: |target, count, meter| transfer::writes(&connect(target)?, MIB, count, meter),
    },
    Workload {
        name: "tcp-idle",
        peer: PeerKind::TcpEcho,
        run: idle,
    },
];

/// As idle streams. One of them still answers then.
fn idle(target: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let mut streams = Vec::with_capacity(count as usize);
    meter.section(count.into(), || -> anyhow::Result<()> {
        for _ in 0..count {
            streams.push(connect(target)?);
        }
        Ok(())
    })?;
    let middle = streams.get(streams.len() / 2).context("a stream")?;
    transfer::round_trip(middle)
}

fn connect(target: Target) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect((target.address, target.port))?;
    // What was written is in flight, as with the other streams.
    stream.set_nodelay(true)?;
    Ok(stream)
}
