//! Connections that carry messages.

use anyhow::{Context as _, ensure};
use rdmacm::{CLOSE_DEADLINE, Connector};

use super::{PeerKind, Place, Workload};
use crate::meter::Meter;

const MESSAGE: [u8; 64] = [7; 64];

pub(super) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "round-trip",
        peer: PeerKind::Echo,
        run: round_trip,
    },
    Workload {
        name: "round-trip-tokio",
        peer: PeerKind::Echo,
        run: round_trip_on_tokio,
    },
];

/// A message and its reply, blocking.
fn round_trip(place: Place, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let connection = Connector::new((place.address, place.port)).connect()?;
    let one = || -> anyhow::Result<()> {
        connection.send(&MESSAGE)?;
        let reply = connection.receive()?.context("no reply")?;
        ensure!(*reply == MESSAGE, "{reply:?}");
        Ok(())
    };
    one()?;
    meter.section(count.into(), || (0..count).try_for_each(|_| one()))?;
    Ok(connection.close(CLOSE_DEADLINE)?)
}

/// The same on tokio.
fn round_trip_on_tokio(place: Place, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let connector = rdmacm::tokio::Connector::new((place.address, place.port));
    let connection = runtime.block_on(async { connector.connect().await })?;
    let one = async || -> anyhow::Result<()> {
        connection.send(&MESSAGE).await?;
        let reply = connection.receive().await?.context("no reply")?;
        ensure!(*reply == MESSAGE, "{reply:?}");
        Ok(())
    };
    runtime.block_on(one())?;
    meter.section(count.into(), || {
        runtime.block_on(async {
            for _ in 0..count {
                one().await?;
            }
            anyhow::Ok(())
        })
    })?;
    Ok(runtime.block_on(connection.close(CLOSE_DEADLINE))?)
}
