//! Much data, with several requests in flight.

use std::collections::VecDeque;

use anyhow::Context as _;
use rdmacm::{CLOSE_DEADLINE, Connector};
use rdmacm_verbs::{Buffer, RemoteMemory};

use super::{PeerKind, Target, Workload};
use crate::meter::Meter;

/// Requests in flight.
const DEPTH: usize = 8;
const KIB_64: usize = 64 << 10;
const MIB: usize = 1 << 20;

/// How the data get to the peer or from it.
#[derive(Clone, Copy, Debug)]
enum Way {
    Send,
    Write,
    Read,
}

macro_rules! workload {
    ($name:literal, $way:ident, $size:ident) => {
        Workload {
            name: $name,
            peer: PeerKind::Memory,
            run: |target, count, meter| transfer(target, count, meter, Way::$way, $size),
        }
    };
}

pub(super) const WORKLOADS: &[Workload] = &[
    workload!("send-64k", Send, KIB_64),
    workload!("write-64k", Write, KIB_64),
    workload!("read-64k", Read, KIB_64),
    workload!("send-1m", Send, MIB),
    workload!("write-1m", Write, MIB),
    workload!("read-1m", Read, MIB),
];

fn transfer(
    target: Target,
    count: u32,
    meter: &mut Meter,
    way: Way,
    size: usize,
) -> anyhow::Result<()> {
    let connection = Connector::new((target.address, target.port)).connect()?;
    // The peer replies with its memory.
    connection.send(b"memory")?;
    let reply = connection.receive()?.context("no reply")?;
    let remote = RemoteMemory::from_bytes(&reply).context("the peer's memory")?;
    let remote = remote
        .slice(..size as u64)
        .context("the peer's memory is short")?;
    let buffers = (0..DEPTH).map(|_| connection.allocate(size));
    let mut buffers = buffers.collect::<Result<Vec<Buffer>, _>>()?;
    let mut in_flight = VecDeque::with_capacity(DEPTH);
    let start = |buffer: Buffer| match way {
        Way::Send => connection.start_send(buffer),
        Way::Write => connection.start_write(buffer, remote),
        Way::Read => connection.start_read(buffer, remote),
    };
    meter.section(count.into(), || -> anyhow::Result<()> {
        for _ in 0..count {
            let buffer = match buffers.pop() {
                Some(buffer) => buffer,
                None => wait(&mut in_flight)?,
            };
            in_flight.push_back(start(buffer)?);
        }
        while !in_flight.is_empty() {
            wait(&mut in_flight)?;
        }
        Ok(())
    })?;
    Ok(connection.close(CLOSE_DEADLINE)?)
}

/// Waits for the oldest transfer.
fn wait(in_flight: &mut VecDeque<rdmacm::Transfer<'_, Buffer>>) -> anyhow::Result<Buffer> {
    Ok(in_flight.pop_front().context("a transfer")?.wait()?)
}
