//! Posting and polling.

use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rdmacm::{CmConnection, Connector};
use rdmacm_core::{IdHandle, QpType};
use rdmacm_verbs::{
    Buffer, CompletionQueue, Context, QpCaps, QueuePair, SendOperation, SendRequest,
};

use super::{PeerKind, Place, Workload};
use crate::meter::Meter;

const SIZE: usize = 64;
/// Requests between two waits.
const BATCH: usize = 16;
/// Longer than the device needs for a batch.
const PAUSE: Duration = Duration::from_millis(30);

pub(super) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "post-send",
        peer: PeerKind::Sink,
        run: |place, count, meter| {
            sends(
                place,
                count,
                &mut |post| meter.section(1, post),
                &mut |poll| poll(),
            )
        },
    },
    Workload {
        name: "poll-send",
        peer: PeerKind::Sink,
        run: |place, count, meter| {
            sends(place, count, &mut |post| post(), &mut |poll| {
                meter.section(1, poll)
            })
        },
    },
    Workload {
        name: "post-receive",
        peer: PeerKind::Sink,
        run: receives,
    },
    Workload {
        name: "next-completion",
        peer: PeerKind::Sink,
        run: next,
    },
];

const CAPS: QpCaps = QpCaps {
    max_send_wr: 64,
    max_recv_wr: 256,
    max_send_sge: 1,
    max_recv_sge: 1,
    max_inline_data: 0,
};

fn connect(place: Place) -> anyhow::Result<CmConnection<QueuePair>> {
    let connector = Connector::new((place.address, place.port));
    Ok(connector.connect_with(|id: &IdHandle| {
        let device = id.addresses()?.device.ok_or(std::io::ErrorKind::NotFound)?;
        let context = Context::open_by_id(device)?;
        let options = QueuePair::options(QpType::RC).caps(CAPS).waitable();
        Ok(options.create(&context)?)
    })?)
}

type Section<'a> = &'a mut dyn FnMut(&mut dyn FnMut() -> anyhow::Result<()>) -> anyhow::Result<()>;

/// Sends messages in batches; `post` and `poll` run one post and one poll each.
fn sends(place: Place, count: u32, post: Section<'_>, poll: Section<'_>) -> anyhow::Result<()> {
    let connection = connect(place)?;
    let queue_pair = connection.queue_pair();
    let completions = queue_pair.send_queue();
    let mut buffers = queue_pair
        .protection_domain()
        .allocate(SIZE * BATCH)?
        .into_chunks(SIZE);
    for _ in 0..count as usize / BATCH {
        for buffer in buffers.drain(..) {
            let mut buffer = Some(buffer);
            post(&mut || post_send(queue_pair, &mut buffer))?;
        }
        thread::sleep(PAUSE);
        for _ in 0..BATCH {
            poll(&mut || {
                buffers.push(poll_send(completions)?);
                Ok(())
            })?;
        }
    }
    Ok(())
}

fn post_send(queue_pair: &QueuePair, buffer: &mut Option<Buffer>) -> anyhow::Result<()> {
    let buffer = buffer.take().context("a buffer")?;
    queue_pair
        .post_send(SendRequest::new(SendOperation::Send, buffer))
        .map_err(|refused| refused.error)?;
    Ok(())
}

fn poll_send(completions: &CompletionQueue) -> anyhow::Result<Buffer> {
    let completion = completions.poll()?.context("the device was slow")?;
    completion.result?;
    completion.sg_list.into_buffer().context("a buffer")
}

fn receives(place: Place, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    ensure!(count <= CAPS.max_recv_wr, "more than fit");
    let connection = connect(place)?;
    let queue_pair = connection.queue_pair();
    let buffers = queue_pair
        .protection_domain()
        .allocate(SIZE * count as usize)?
        .into_chunks(SIZE);
    for buffer in buffers {
        meter
            .section(1, || queue_pair.post_receive(buffer))
            .map_err(|refused| refused.error)?;
    }
    Ok(())
}

/// Waits for each completion.
fn next(place: Place, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let connection = connect(place)?;
    let queue_pair = connection.queue_pair();
    let mut buffer = Some(queue_pair.protection_domain().allocate(SIZE)?);
    for _ in 0..count {
        post_send(queue_pair, &mut buffer)?;
        let completion = meter.section(1, || queue_pair.send_queue().next(None))?;
        let completion = completion.context("a completion")?;
        completion.result?;
        buffer = completion.sg_list.into_buffer();
    }
    Ok(())
}
