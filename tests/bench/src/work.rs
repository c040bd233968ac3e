//! The workloads.

use std::net::IpAddr;

use anyhow::bail;

use crate::meter::Meter;

mod bare;
mod connections;
mod data_path;
mod ids;
mod messages;
mod queue_pairs;
mod streams;
mod throughput;
mod waiters;

pub(crate) use self::connections::QueuePairs;

/// Where a workload runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// An address of the RDMA device.
    pub(crate) address: IpAddr,
    /// The port of the peer, if the workload has one.
    pub(crate) port: u16,
}

/// The peer that a workload needs, in a process of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PeerKind {
    /// No peer.
    None,
    /// Accepts connections, and receives all messages.
    Sink,
    /// Accepts connections, and returns every message.
    Echo,
    /// The same, some time after each message.
    LateEcho,
    /// Accepts connections that carry no messages.
    Acceptor,
    /// Accepts connections that carry messages, with as many receive requests as clients
    /// have by default.
    MessageAcceptor,
    /// Replies to the first message with memory of its own, and receives all others, of up
    /// to 1 MiB.
    Memory,
    /// Accepts byte streams, and returns every byte.
    StreamEcho,
    /// The same, some time after each read.
    LateStreamEcho,
    /// Accepts byte streams, reads as many bytes as the first eight announce, and replies with
    /// one.
    StreamSink,
    /// As [`StreamEcho`](Self::StreamEcho), by TCP.
    TcpEcho,
    /// As [`StreamSink`](Self::StreamSink), by TCP.
    TcpSink,
}

/// Something to measure: `run` does `count` operations in sections of the meter.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) peer: PeerKind,
    pub(crate) run: fn(Target, u32, &mut Meter) -> anyhow::Result<()>,
}

/// All workloads.
pub(crate) fn all() -> impl Iterator<Item = &'static Workload> {
    let groups = [
        bare::WORKLOADS,
        ids::WORKLOADS,
        connections::WORKLOADS,
        data_path::WORKLOADS,
        queue_pairs::WORKLOADS,
        messages::WORKLOADS,
        streams::WORKLOADS,
        streams::IDLE,
        streams::TCP,
        throughput::WORKLOADS,
        waiters::WORKLOADS,
    ];
    groups.into_iter().flatten()
}

/// The workload of this name.
pub(crate) fn find(name: &str) -> anyhow::Result<&'static Workload> {
    match all().find(|workload| workload.name == name) {
        Some(workload) => Ok(workload),
        None => bail!("no workload {name}"),
    }
}
