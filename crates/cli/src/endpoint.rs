//! A queue pair with its completion queue.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdmacm::core::{DepthLimits, IdHandle, QpAttr, QpAttrMask, QpType, Transport};
use rdmacm_verbs::{
    Completion, CompletionQueue, Context, Error, ProtectionDomain, QpCaps, QueuePair, RemoteMemory,
    SendOperation, SendRequest, SgList, WorkId,
};
use tokio::io::unix::AsyncFd;

use crate::failure::Failure;
use crate::keep_alive;

/// The sizes of an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Send requests in flight.
    pub(crate) sends: u32,
    /// Receive requests posted.
    pub(crate) receives: u32,
    /// Bytes of the buffer of each.
    pub(crate) receive_size: usize,
    /// Bytes of a message that can be sent inline.
    pub(crate) inline: u32,
    /// Whether to poll for completions instead of sleeping.
    pub(crate) spin: bool,
}

/// A queue pair whose sends and receives complete on one completion queue.
#[derive(Debug)]
pub(crate) struct Endpoint {
    queue_pair: QueuePair,
    completions: CompletionQueue,
    watched: AsyncFd<OwnedFd>,
    spin: bool,
    /// Polls so far.
    polls: AtomicU32,
    activity: Mutex<Activity>,
}

#[derive(Debug, Default)]
struct Activity {
    /// Completions so far, without those of keep-alives.
    completions: u64,
    /// The keep-alive that is in flight.
    keep_alive: Option<WorkId>,
}

/// Keep-alives in flight.
const KEEP_ALIVES: u32 = 1;
/// So many retries mean no limit on rxe (`rxe_completer`), and no request would fail.
const ENDLESS_RETRIES: u8 = 7;

/// How many polls until other tasks run.
const POLLS_BETWEEN_YIELDS: u32 = 64;
/// How many polls until the device is checked for removal, which takes a system call.
const POLLS_BETWEEN_REMOVAL_CHECKS: u32 = 1 << 16;

impl Endpoint {
    /// Creates one on the id's device and posts its receive requests.
    pub(crate) fn new(id: &IdHandle, shape: Shape) -> io::Result<Self> {
        let device = id.addresses()?.device.ok_or(io::ErrorKind::NotFound)?;
        let context = Context::open_by_id(device)?;
        let channel = context.create_completion_channel()?;
        let sends = shape.sends.saturating_add(KEEP_ALIVES);
        let entries = sends.saturating_add(shape.receives);
        let completions = CompletionQueue::options(entries).channel(&channel);
        let completions = completions.create(&context)?;
        let caps = QpCaps {
            max_send_wr: sends,
            max_recv_wr: shape.receives,
            max_inline_data: shape.inline,
            ..QpCaps::default()
        };
        let options = QueuePair::options(QpType::RC).caps(caps);
        let options = options.send_cq(&completions).recv_cq(&completions);
        let queue_pair = options.create(&context)?;
        // A queue pair in the state RESET accepts no receive requests.
        id.with_queue_pair(&queue_pair).init()?;
        post_receives(&queue_pair, shape)?;
        let watched = channel.readiness()?.try_clone_to_owned()?;
        #[expect(
            deprecated,
            reason = "its successor is new and takes a proof that an owned descriptor is one"
        )]
        let watched = AsyncFd::new(watched)?;
        Ok(Self {
            queue_pair,
            completions,
            watched,
            spin: shape.spin,
            polls: AtomicU32::new(0),
            activity: Mutex::default(),
        })
    }

    pub(crate) fn queue_pair(&self) -> &QueuePair {
        &self.queue_pair
    }

    pub(crate) fn domain(&self) -> &ProtectionDomain {
        self.queue_pair.protection_domain()
    }

    /// Waits for the next completion.
    pub(crate) async fn next(&self) -> Result<Completion, Error> {
        loop {
            self.yield_sometimes().await;
            if let Some(completion) = self.poll()? {
                return Ok(completion);
            }
            if !self.spin {
                self.completions.arm(false)?;
                if let Some(completion) = self.poll()? {
                    return Ok(completion);
                }
                self.wait_for_notification().await?;
            }
        }
    }

    /// Polls for a completion.
    pub(crate) fn poll(&self) -> Result<Option<Completion>, Error> {
        while let Some(completion) = self.completions.poll()? {
            // That of a keep-alive that has failed tells why the peer is silent.
            if !self.is_keep_alive(completion.work) || completion.result().is_err() {
                return Ok(Some(completion));
            }
        }
        Ok(None)
    }

    /// Whether the completion is that of a keep-alive; counts it otherwise.
    fn is_keep_alive(&self, work: WorkId) -> bool {
        let mut activity = self.activity();
        let is_keep_alive = activity.keep_alive == Some(work);
        if is_keep_alive {
            activity.keep_alive = None;
        } else {
            activity.completions += 1;
        }
        is_keep_alive
    }

    /// Detects a dead peer while other code waits for completions, one of which fails then.
    /// Returns if there have been none for as long as the limit.
    pub(crate) async fn watch_peer(&self, limit: Option<Duration>) -> Failure {
        let completions = || self.activity().completions;
        let send_keep_alive = || self.send_keep_alive();
        Failure::Silent(keep_alive::watch(completions, send_keep_alive, limit).await)
    }

    /// Posts an empty write, which needs no memory, unless the last one is in flight: that one
    /// detects a dead peer as well.
    fn send_keep_alive(&self) {
        let mut activity = self.activity();
        if activity.keep_alive.is_some() {
            return;
        }
        let nothing = SendOperation::Write(RemoteMemory::NONE);
        let request = SendRequest::new(nothing, SgList::NONE);
        // It is refused if the connection is over, which the caller learns anyway.
        activity.keep_alive = self.queue_pair.post_send(request).ok();
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until the completion channel is readable.
    async fn wait_for_notification(&self) -> Result<(), Error> {
        let Ok(mut ready) = self.watched.readable().await else {
            // The runtime shuts down.
            return std::future::pending().await;
        };
        if let Some(channel) = self.completions.channel() {
            // What follows a notification does not tell of the device's removal.
            while channel.try_next()?.is_some() || channel.try_next()?.is_some() {}
        }
        ready.clear_ready();
        Ok(())
    }

    /// Lets other tasks run and checks for removal from time to time, for a caller that polls
    /// memory, or that always finds a completion, never sleeps.
    pub(crate) async fn yield_sometimes(&self) {
        let polls = self.polls.fetch_add(1, Ordering::Relaxed);
        if polls % POLLS_BETWEEN_REMOVAL_CHECKS == POLLS_BETWEEN_REMOVAL_CHECKS - 1 {
            // A caller that never sleeps does not read the device's events.
            self.completions.context().check_removal();
        }
        if polls % POLLS_BETWEEN_YIELDS == POLLS_BETWEEN_YIELDS - 1 {
            tokio::task::yield_now().await;
        }
    }
}

fn post_receives(queue_pair: &QueuePair, shape: Shape) -> Result<(), Error> {
    let Shape {
        receives,
        receive_size,
        ..
    } = shape;
    let all = receive_size.saturating_mul(receives as usize);
    let memory = queue_pair.protection_domain().allocate(all)?;
    for buffer in memory.into_chunks(receive_size) {
        queue_pair.post_receive(buffer)?;
    }
    Ok(())
}

impl rdmacm::core::QueuePair for Endpoint {
    fn number(&self) -> u32 {
        self.queue_pair.number()
    }

    fn transport(&self) -> Transport {
        self.queue_pair.transport()
    }

    fn depth_limits(&self) -> DepthLimits {
        self.queue_pair.depth_limits()
    }

    /// Limits the retries, so that requests to a dead peer fail at some time.
    fn modify(&self, attr: &QpAttr, mask: QpAttrMask) -> io::Result<()> {
        let mut attr = *attr;
        attr.retry_count = attr.retry_count.min(ENDLESS_RETRIES - 1);
        rdmacm::core::QueuePair::modify(&self.queue_pair, &attr, mask)
    }
}
