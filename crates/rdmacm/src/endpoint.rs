//! Queue pairs for endpoints.

use std::io;

use rdmacm_addrinfo::AddrInfo;
use rdmacm_core::{IdHandle, QpType};
use rdmacm_verbs::{PostError, QpOptions, QueuePair, SgList, WorkId};

use crate::data::{check_device, open_context};
use crate::error::{Cause, Error, Result, Target};
use crate::event_loop::EventLoop;
use crate::stage::Stage;

mod completions;

pub(crate) use completions::next_completion;

const NOT_CONNECTED: &str = "endpoints are for reliable connections";

/// Refuses results that are not for reliable connections.
pub(crate) fn check(info: &AddrInfo) -> Result<()> {
    if info.qp_type == QpType::RC {
        return Ok(());
    }
    Err(refused(Stage::QueuePair, NOT_CONNECTED))
}

/// The arguments are invalid.
pub(crate) fn refused(stage: Stage, reason: &'static str) -> Error {
    let error = io::Error::new(io::ErrorKind::InvalidInput, reason);
    Error::new(stage, Cause::QueuePair(error))
}

/// Posts to the queue that the queue pair receives from, its own or a shared one.
pub(crate) fn post_receive(
    queue_pair: &QueuePair,
    memory: impl Into<SgList>,
) -> Result<WorkId, PostError<SgList>> {
    match queue_pair.shared_receive_queue() {
        Some(shared) => shared.post_receive(memory),
        None => queue_pair.post_receive(memory),
    }
}

/// Creates a queue pair on the id's device, in INIT.
pub(crate) fn create_queue_pair(
    event_loop: &EventLoop,
    id: &IdHandle,
    options: &QpOptions,
) -> Result<QueuePair> {
    try_create(event_loop, id, options).map_err(|error| {
        let target = Target::from_id(id, None);
        let cause = Cause::queue_pair(error);
        let elapsed = std::time::Duration::ZERO;
        Error::with_target(Stage::QueuePair, target, elapsed, cause)
    })
}

fn try_create(event_loop: &EventLoop, id: &IdHandle, options: &QpOptions) -> io::Result<QueuePair> {
    let device = id.addresses()?.device.ok_or(io::ErrorKind::NotFound)?;
    let queue_pair = match options.context() {
        None => options.create(&open_context(event_loop, device)?)?,
        Some(context) => {
            check_device(id, context)?;
            options.create(context)?
        }
    };
    id.with_queue_pair(&queue_pair).init()?;
    Ok(queue_pair)
}
