//! One end of a connection that moves data.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use rdmacm::core::{DepthLimits, IdHandle, QpAttr, QpAttrMask, QpType, Transport};
use rdmacm_verbs::{
    Completion, CompletionQueue, Context, Error, ProtectionDomain, QpCaps, QueuePair,
};
use tokio::io::unix::AsyncFd;

/// What an end is to be like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Requests under way at once.
    pub(crate) sends: u32,
    /// Messages there is room for.
    pub(crate) receives: u32,
    /// Bytes each of them may have.
    pub(crate) room: usize,
    /// Bytes a message may have that is sent without registered memory.
    pub(crate) inline: u32,
    /// Whether to look for completions all the time instead of sleeping.
    pub(crate) spin: bool,
}

/// A queue pair with one completion queue for all it does.
#[derive(Debug)]
pub(crate) struct Endpoint {
    queue_pair: QueuePair,
    completions: CompletionQueue,
    watched: AsyncFd<OwnedFd>,
    spin: bool,
    /// Looks since others had a turn.
    looks: AtomicU32,
}

/// How often one may look before others have a turn.
const LOOKS: u32 = 64;
/// After how many a device that goes is asked for, which takes a call of the system.
const MANY_LOOKS: u32 = 1 << 16;

impl Endpoint {
    /// One on the id's device, with room for messages posted.
    pub(crate) fn new(id: &IdHandle, shape: Shape) -> io::Result<Self> {
        let device = id.addresses()?.device.ok_or(io::ErrorKind::NotFound)?;
        let context = Context::open_by_id(device)?;
        let channel = context.create_completion_channel()?;
        let entries = shape.sends.saturating_add(shape.receives);
        let completions = CompletionQueue::options(entries).channel(&channel);
        let completions = completions.create(&context)?;
        let caps = QpCaps {
            max_send_wr: shape.sends,
            max_recv_wr: shape.receives,
            max_inline_data: shape.inline,
            ..QpCaps::default()
        };
        let options = QueuePair::options(QpType::RC).caps(caps);
        let options = options.send_queue(&completions).receive_queue(&completions);
        let queue_pair = options.create(&context)?;
        // Before that it takes no receives.
        id.with_queue_pair(&queue_pair).init()?;
        post_receives(&queue_pair, shape)?;
        let watched = channel.as_fd().try_clone_to_owned()?;
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
            looks: AtomicU32::new(0),
        })
    }

    pub(crate) fn queue_pair(&self) -> &QueuePair {
        &self.queue_pair
    }

    pub(crate) fn domain(&self) -> &ProtectionDomain {
        self.queue_pair.protection_domain()
    }

    /// The next completion, waited for.
    pub(crate) async fn next(&self) -> Result<Completion, Error> {
        loop {
            self.give_way().await;
            if let Some(completion) = self.completions.poll()? {
                return Ok(completion);
            }
            if !self.spin {
                self.completions.arm(false)?;
                if let Some(completion) = self.completions.poll()? {
                    return Ok(completion);
                }
                self.told().await?;
            }
        }
    }

    /// A completion that is there.
    pub(crate) fn poll(&self) -> Result<Option<Completion>, Error> {
        self.completions.poll()
    }

    /// Sleeps until the channel tells of a completion.
    async fn told(&self) -> Result<(), Error> {
        let Ok(mut ready) = self.watched.readable().await else {
            // The runtime is about to go.
            return std::future::pending().await;
        };
        if let Some(channel) = self.completions.channel() {
            while channel.take()?.is_some() {}
        }
        ready.clear_ready();
        Ok(())
    }

    /// Gives others a turn now and then: whoever always finds a completion would
    /// never sleep.
    pub(crate) async fn give_way(&self) {
        let looks = self.looks.fetch_add(1, Ordering::Relaxed);
        if self.spin && looks % MANY_LOOKS == MANY_LOOKS - 1 {
            // Who never sleeps hears of nothing.
            self.completions.context().check_removal();
        }
        if looks % LOOKS == LOOKS - 1 {
            tokio::task::yield_now().await;
        }
    }
}

fn post_receives(queue_pair: &QueuePair, shape: Shape) -> Result<(), Error> {
    let Shape { receives, room, .. } = shape;
    let all = room.saturating_mul(receives as usize);
    let memory = queue_pair.protection_domain().allocate(all)?;
    for buffer in memory.into_chunks(room) {
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

    fn modify(&self, attr: &QpAttr, mask: QpAttrMask) -> io::Result<()> {
        rdmacm::core::QueuePair::modify(&self.queue_pair, attr, mask)
    }
}
