//! What is transferred, by any byte stream.

use std::io::{Read, Write};

use anyhow::ensure;

use crate::meter::Meter;

pub(super) const SMALL: usize = 64;
pub(super) const KIB_64: usize = 64 << 10;
pub(super) const MIB: usize = 1 << 20;

/// Round trips that are not measured: more than a stream's queues hold, so that nothing grows any
/// more.
const WARM_UP: u32 = 256;

/// 64 bytes and their return.
pub(super) fn round_trip(mut stream: impl Read + Write) -> anyhow::Result<()> {
    let bytes = [7; SMALL];
    stream.write_all(&bytes)?;
    let mut reply = [0; SMALL];
    stream.read_exact(&mut reply)?;
    ensure!(reply == bytes, "{reply:?}");
    Ok(())
}

pub(super) fn round_trips(
    mut stream: impl Read + Write,
    count: u32,
    meter: &mut Meter,
) -> anyhow::Result<()> {
    (0..WARM_UP).try_for_each(|_| round_trip(&mut stream))?;
    meter.section(count.into(), || {
        (0..count).try_for_each(|_| round_trip(&mut stream))
    })
}

/// Writes of this size, until the peer has read all of them.
pub(super) fn writes(
    mut stream: impl Read + Write,
    size: usize,
    count: u32,
    meter: &mut Meter,
) -> anyhow::Result<()> {
    let bytes = vec![7; size];
    announce(&mut stream, size, count)?;
    meter.section(count.into(), || -> anyhow::Result<()> {
        write_all(&mut stream, &bytes, count)?;
        confirm(&mut stream)
    })
}

/// Writes of this size, which the peer reads later, after as many others.
pub(super) fn messages(
    mut stream: impl Read + Write,
    size: usize,
    count: u32,
    meter: &mut Meter,
) -> anyhow::Result<()> {
    let bytes = vec![7; size];
    announce(&mut stream, size, count)?;
    write_all(&mut stream, &bytes, count)?;
    confirm(&mut stream)?;
    announce(&mut stream, size, count)?;
    meter.section(count.into(), || write_all(&mut stream, &bytes, count))?;
    confirm(&mut stream)
}

fn write_all(stream: &mut impl Write, bytes: &[u8], count: u32) -> anyhow::Result<()> {
    for _ in 0..count {
        stream.write_all(bytes)?;
    }
    Ok(())
}

/// Tells the peer how many bytes follow.
fn announce(stream: &mut impl Write, size: usize, count: u32) -> anyhow::Result<()> {
    let bytes = size as u64 * u64::from(count);
    Ok(stream.write_all(&bytes.to_le_bytes())?)
}

/// Waits until the peer has read what was announced.
fn confirm(stream: &mut impl Read) -> anyhow::Result<()> {
    let mut reply = [0];
    stream.read_exact(&mut reply)?;
    ensure!(reply == [1], "{reply:?}");
    Ok(())
}
