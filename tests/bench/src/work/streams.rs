//! Byte streams.

use std::io::{Read as _, Write as _};

use anyhow::ensure;
use rdmacm::{CLOSE_DEADLINE, RdmaStream};

use super::{PeerKind, Target, Workload};
use crate::meter::Meter;

const BYTES: [u8; 64] = [7; 64];

pub(super) const WORKLOADS: &[Workload] = &[Workload {
    name: "round-trip-stream",
    peer: PeerKind::StreamEcho,
    run: round_trip,
}];

/// 64 bytes and their return, blocking.
fn round_trip(target: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let stream = RdmaStream::connect((target.address, target.port))?;
    let one = || -> anyhow::Result<()> {
        (&stream).write_all(&BYTES)?;
        let mut reply = [0; BYTES.len()];
        (&stream).read_exact(&mut reply)?;
        ensure!(reply == BYTES, "{reply:?}");
        Ok(())
    };
    one()?;
    meter.section(count.into(), || (0..count).try_for_each(|_| one()))?;
    Ok(stream.close(CLOSE_DEADLINE)?)
}
