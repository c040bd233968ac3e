//! Connections that carry messages.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use rdmacm::{CLOSE_DEADLINE, Connection, Connector, MessageOptions, tokio as on_tokio};

use super::{PeerKind, Target, Workload};
use crate::meter::Meter;

const MESSAGE: [u8; 64] = [7; 64];
/// Of a reply that is late.
const DEADLINE: Duration = Duration::from_secs(10);

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
    Workload {
        name: "round-trip-tokio-sleeping",
        peer: PeerKind::Echo,
        run: sleeping_round_trip_on_tokio,
    },
    Workload {
        name: "round-trip-late",
        peer: PeerKind::LateEcho,
        run: late_round_trip,
    },
    Workload {
        name: "round-trip-late-tokio",
        peer: PeerKind::LateEcho,
        run: late_round_trip_on_tokio,
    },
];

/// A message and its reply, blocking.
fn round_trip(target: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let connection = Connector::new((target.address, target.port)).connect()?;
    measure(&connection, count, meter)?;
    Ok(connection.close(CLOSE_DEADLINE)?)
}

/// A message and its reply, which is so late that each wait for it sleeps, until a deadline.
fn late_round_trip(target: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let options = MessageOptions::new().busy_poll(Duration::ZERO);
    let connector = Connector::new((target.address, target.port));
    let connection = connector.connect_messages(options)?;
    connection.set_deadline(DEADLINE);
    measure(&connection, count, meter)?;
    Ok(connection.close(CLOSE_DEADLINE)?)
}

fn measure(connection: &Connection, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let one = || -> anyhow::Result<()> {
        connection.send(&MESSAGE)?;
        let reply = connection.receive()?.context("no reply")?;
        ensure!(*reply == MESSAGE, "{reply:?}");
        Ok(())
    };
    one()?;
    meter.section(count.into(), || (0..count).try_for_each(|_| one()))
}

/// A message and its reply, on tokio. The task polls as long as a thread does by default.
fn round_trip_on_tokio(target: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let options = MessageOptions::new().busy_poll(Duration::from_micros(500));
    measure_on_tokio(target, count, meter, options, |_| ())
}

/// The same by a task that sleeps at once, as it does by default.
fn sleeping_round_trip_on_tokio(
    target: Target,
    count: u32,
    meter: &mut Meter,
) -> anyhow::Result<()> {
    measure_on_tokio(target, count, meter, MessageOptions::new(), |_| ())
}

/// The same with a reply that is late, until a deadline.
fn late_round_trip_on_tokio(target: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let set_deadline = |connection: &on_tokio::Connection| connection.set_deadline(DEADLINE);
    measure_on_tokio(target, count, meter, MessageOptions::new(), set_deadline)
}

fn measure_on_tokio(
    target: Target,
    count: u32,
    meter: &mut Meter,
    options: MessageOptions,
    prepare: impl FnOnce(&on_tokio::Connection),
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let connector = on_tokio::Connector::new((target.address, target.port));
    let connection = runtime.block_on(async { connector.connect_messages(options).await })?;
    prepare(&connection);
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
