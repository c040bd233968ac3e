//! Byte streams of this library, and of TCP.

mod idle;
mod tcp;
mod transfer;

use std::time::Duration;

use rdmacm::{CLOSE_DEADLINE, Connector, RdmaStream, StreamOptions};

use self::transfer::{KIB_64, MIB, SMALL};
use super::{PeerKind, Target, Workload};

pub(super) use self::idle::WORKLOADS as IDLE;
pub(super) use self::tcp::WORKLOADS as TCP;

pub(super) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "round-trip-stream",
        peer: PeerKind::StreamEcho,
        run: |target, count, meter| {
            on_stream(target, StreamOptions::new(), |stream| {
                transfer::round_trips(stream, count, meter)
            })
        },
    },
    Workload {
        name: "round-trip-stream-late",
        peer: PeerKind::LateStreamEcho,
        run: |target, count, meter| {
            let options = StreamOptions::new().busy_poll(Duration::ZERO);
            on_stream(target, options, |stream| {
                transfer::round_trips(stream, count, meter)
            })
        },
    },
    Workload {
        name: "stream-64",
        peer: PeerKind::StreamSink,
        run: |target, count, meter| {
            on_stream(target, StreamOptions::new(), |stream| {
                transfer::messages(stream, SMALL, count, meter)
            })
        },
    },
    Workload {
        name: "stream-64k",
        peer: PeerKind::StreamSink,
        run: |target, count, meter| {
            on_stream(target, StreamOptions::new(), |stream| {
                transfer::writes(stream, KIB_64, count, meter)
            })
        },
    },
    Workload {
        name: "stream-1m",
        peer: PeerKind::StreamSink,
        run: |target, count, meter| {
            on_stream(target, StreamOptions::new(), |stream| {
                transfer::writes(stream, MIB, count, meter)
            })
        },
    },
];

fn on_stream(
    target: Target,
    options: StreamOptions,
    work: impl FnOnce(&RdmaStream) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let connector = Connector::new((target.address, target.port));
    let stream = connector.connect_stream(options)?;
    work(&stream)?;
    Ok(stream.close(CLOSE_DEADLINE)?)
}
