//! Posting and polling.

use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rdmacm::{CmConnection, Connector};
use rdmacm_core::{IdHandle, QpType};
use rdmacm_verbs::{
    Buffer, Completion, CompletionQueue, Context, QpCaps, QueuePair, SendOperation, SendRequest,
    SgList,
};

use super::{PeerKind, Target, Workload};
use crate::meter::Meter;

const SIZE: usize = 64;
/// Requests between two waits.
const BATCH: usize = 32;
/// A wait that ends for its deadline.
const FIRST_WAIT: Duration = Duration::from_millis(1);
/// A part of a pause: if the machine pauses, the device has worked in the other ones.
const PART: Duration = Duration::from_millis(10);
/// The parts of a pause that is longer than the device needs for a batch. Those of the C programs
/// are as long: a device that has waited for longer takes longer to begin.
const PARTS: u32 = 10;

pub(super) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "post-send",
        peer: PeerKind::Sink,
        run: |target, count, meter| sends(target, count, meter, MeasuredCall::Posts),
    },
    Workload {
        name: "poll-send",
        peer: PeerKind::Sink,
        run: |target, count, meter| sends(target, count, meter, MeasuredCall::Polls),
    },
    Workload {
        name: "poll-sends",
        peer: PeerKind::Sink,
        run: batches,
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
    Workload {
        name: "next-completion-late",
        peer: PeerKind::LateEcho,
        run: next_late,
    },
];

const CAPS: QpCaps = QpCaps {
    max_send_wr: 64,
    max_recv_wr: 256,
    max_send_sge: 1,
    max_recv_sge: 1,
    max_inline_data: 0,
};

fn connect(target: Target) -> anyhow::Result<CmConnection<QueuePair>> {
    let connector = Connector::new((target.address, target.port));
    Ok(connector.connect_with(|id: &IdHandle| {
        let device = id.addresses()?.device.ok_or(std::io::ErrorKind::NotFound)?;
        let context = Context::open_by_id(device)?;
        let options = QueuePair::options(QpType::RC)
            .caps(CAPS)
            .with_completion_channels();
        Ok(options.create(&context)?)
    })?)
}

/// What of sending messages is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MeasuredCall {
    Posts,
    Polls,
}

/// Sends messages in batches; measures each post or each poll.
fn sends(
    target: Target,
    count: u32,
    meter: &mut Meter,
    measured: MeasuredCall,
) -> anyhow::Result<()> {
    let connection = connect(target)?;
    let queue_pair = connection.queue_pair();
    let completions = queue_pair.send_cq();
    let mut buffers = queue_pair
        .protection_domain()
        .allocate(SIZE * BATCH)?
        .into_chunks(SIZE);
    for _ in 0..count as usize / BATCH {
        for buffer in buffers.drain(..) {
            match measured {
                MeasuredCall::Posts => meter.section(1, || post_send(queue_pair, buffer))?,
                MeasuredCall::Polls => post_send(queue_pair, buffer)?,
            }
        }
        pause(PARTS);
        while buffers.len() < BATCH {
            let polled = match measured {
                MeasuredCall::Posts => poll_send(completions)?,
                MeasuredCall::Polls => meter.section(1, || poll_send(completions))?,
            };
            if polled.is_none() {
                // The device is slow.
                pause(PARTS);
            }
            buffers.extend(polled);
        }
    }
    Ok(())
}

/// Sends messages in batches, and polls each batch at once. The memory of each completion goes to
/// the next request as it is.
fn batches(target: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let connection = connect(target)?;
    let queue_pair = connection.queue_pair();
    let completions = queue_pair.send_cq();
    let buffers = queue_pair
        .protection_domain()
        .allocate(SIZE * BATCH)?
        .into_chunks(SIZE);
    let mut memory: Vec<SgList> = buffers.into_iter().map(SgList::from).collect();
    let mut polled = Vec::with_capacity(BATCH);
    for _ in 0..count as usize / BATCH {
        for sg_list in memory.drain(..) {
            post_send(queue_pair, sg_list)?;
        }
        pause(3 * PARTS);
        let taken = meter.section(BATCH as u64, || poll_sends(completions, &mut polled))?;
        ensure!(taken == BATCH, "the device is slow");
        memory.extend(polled.drain(..).map(|completion| completion.sg_list));
    }
    Ok(())
}

/// Lets the device work.
fn pause(parts: u32) {
    for _ in 0..parts {
        thread::sleep(PART);
    }
}

/// Polls into `polled`. How many there were; fails if one of the requests has failed.
fn poll_sends(
    completions: &CompletionQueue,
    polled: &mut Vec<Completion>,
) -> anyhow::Result<usize> {
    let count = completions.poll_many(polled, BATCH)?;
    for completion in polled {
        completion.result()?;
    }
    Ok(count)
}

fn post_send(queue_pair: &QueuePair, memory: impl Into<SgList>) -> anyhow::Result<()> {
    queue_pair
        .post_send(SendRequest::new(SendOperation::Send, memory))
        .map_err(|refused| refused.error)?;
    Ok(())
}

/// The buffer of the next completion, if there is one.
fn poll_send(completions: &CompletionQueue) -> anyhow::Result<Option<Buffer>> {
    let Some(completion) = completions.poll()? else {
        return Ok(None);
    };
    completion.result()?;
    Ok(completion.sg_list.into_buffer())
}

fn receives(target: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    ensure!(count <= CAPS.max_recv_wr, "more than fit");
    let connection = connect(target)?;
    let queue_pair = connection.queue_pair();
    let buffers = queue_pair
        .protection_domain()
        .allocate(SIZE * count as usize)?
        .into_chunks(SIZE);
    for buffer in buffers {
        meter.section(1, || post_receive(queue_pair, buffer))?;
    }
    Ok(())
}

fn post_receive(queue_pair: &QueuePair, buffer: Buffer) -> anyhow::Result<()> {
    queue_pair
        .post_receive(buffer)
        .map_err(|refused| refused.error)?;
    Ok(())
}

/// Waits for what the peer returns late: each wait sleeps.
fn next_late(target: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let connection = connect(target)?;
    let queue_pair = connection.queue_pair();
    let domain = queue_pair.protection_domain();
    let (mut message, mut room) = (domain.allocate(SIZE)?, domain.allocate(SIZE)?);
    // The first wait opens descriptors.
    let nothing = queue_pair.recv_cq().next(FIRST_WAIT)?;
    ensure!(nothing.is_none(), "a completion of nothing");
    let buffer_of = |completion: Option<Completion>| -> anyhow::Result<Buffer> {
        let completion = completion.context("a completion")?;
        completion.result()?;
        completion.sg_list.into_buffer().context("its buffer")
    };
    for _ in 0..count {
        let posted = queue_pair.post_receive(room);
        posted.map_err(|refused| refused.error)?;
        post_send(queue_pair, message)?;
        message = buffer_of(queue_pair.send_cq().next(None)?)?;
        room = buffer_of(meter.section(1, || queue_pair.recv_cq().next(None))?)?;
    }
    Ok(())
}

/// Waits for each completion.
fn next(target: Target, count: u32, meter: &mut Meter) -> anyhow::Result<()> {
    let connection = connect(target)?;
    let queue_pair = connection.queue_pair();
    let mut buffer = queue_pair.protection_domain().allocate(SIZE)?;
    // The first wait opens descriptors, if the device is too slow for a poll to suffice.
    let nothing = queue_pair.send_cq().next(FIRST_WAIT)?;
    ensure!(nothing.is_none(), "a completion of nothing");
    for _ in 0..count {
        post_send(queue_pair, buffer)?;
        let completion = meter.section(1, || queue_pair.send_cq().next(None))?;
        let completion = completion.context("a completion")?;
        completion.result()?;
        buffer = completion.sg_list.into_buffer().context("its buffer")?;
    }
    Ok(())
}
