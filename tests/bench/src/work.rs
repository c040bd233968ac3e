//! The workloads.

use std::net::IpAddr;

use anyhow::bail;

use crate::meter::Meter;

mod data_path;
mod ids;
mod messages;

/// Where a workload runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// An address of the RDMA device.
    pub(crate) address: IpAddr,
    /// The port of the peer, if the workload has one.
    pub(crate) port: u16,
}

/// The peer that a workload needs, in a process of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerKind {
    /// No peer.
    None,
    /// Accepts connections, and receives all messages.
    Sink,
    /// Accepts connections, and returns every message.
    Echo,
}

/// Something to measure: `run` does `count` operations in sections of the meter.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) peer: PeerKind,
    pub(crate) run: fn(Place, u32, &mut Meter) -> anyhow::Result<()>,
}

/// All workloads.
pub(crate) fn all() -> impl Iterator<Item = &'static Workload> {
    let groups = [ids::WORKLOADS, data_path::WORKLOADS, messages::WORKLOADS];
    groups.into_iter().flatten()
}

/// The workload of this name.
pub(crate) fn find(name: &str) -> anyhow::Result<&'static Workload> {
    match all().find(|workload| workload.name == name) {
        Some(workload) => Ok(workload),
        None => bail!("no workload {name}"),
    }
}
