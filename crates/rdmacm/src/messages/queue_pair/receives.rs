//! Posting receive requests.

use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::{Mutex, MutexGuard};
use rdmacm_verbs::{Buffer, Result, SgList};

use super::MessageQueuePair;
use crate::messages::options::MessageOptions;

/// How many receive requests a queue pair has.
#[derive(Debug, Default)]
pub(super) struct ReceiveRequests {
    /// How many the device has.
    posted: AtomicU32,
    are_posted: AtomicBool,
}

impl ReceiveRequests {
    /// Whether the device has any.
    pub(super) fn is_any_posted(&self) -> bool {
        self.posted.load(Ordering::Relaxed) > 0
    }

    pub(super) fn completed(&self) {
        self.posted.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The memory of messages that were dropped, to receive other ones. It is posted again several
/// pieces at a time, so there are more receive requests than the options say.
#[derive(Debug)]
pub(crate) struct ReturnedMemory {
    queue_pair: Weak<MessageQueuePair>,
    /// How many pieces are posted together.
    batch: usize,
    memory: Mutex<Vec<SgList>>,
}

impl ReturnedMemory {
    pub(super) fn new(queue_pair: &Weak<MessageQueuePair>, options: &MessageOptions) -> Self {
        let batch = usize::try_from(options.receive_batch()).unwrap_or(1);
        Self {
            queue_pair: Weak::clone(queue_pair),
            batch,
            memory: Mutex::new(Vec::with_capacity(batch)),
        }
    }

    /// Has the memory of a message receive another one. Once the connection is closed, it is
    /// freed instead, at the latest with the last message.
    #[inline]
    pub(crate) fn add(&self, buffer: Buffer) {
        if buffer.protection_domain().context().is_in_child() {
            // A thread of the parent may have held the lock at the fork.
            return;
        }
        let mut memory = self.memory.lock();
        memory.push(buffer.into());
        if memory.len() >= self.batch {
            self.post(memory);
        }
    }

    #[cold]
    fn post(&self, mut memory: MutexGuard<'_, Vec<SgList>>) {
        let queue_pair = self.queue_pair.upgrade();
        let posts = |queue_pair: &MessageQueuePair| queue_pair.post_all(&mut memory).is_ok();
        let is_posted = queue_pair.as_deref().is_some_and(posts);
        let unposted = if is_posted {
            Vec::new()
        } else {
            std::mem::take(&mut *memory)
        };
        drop(memory);
        // Not under the lock: dropping the last reference to memory is a system call.
        drop((unposted, queue_pair));
    }
}

impl MessageQueuePair {
    /// Posts all receive requests, the first time.
    pub(crate) fn post_receives(&self) -> Result<()> {
        if self
            .receive_requests
            .are_posted
            .swap(true, Ordering::Relaxed)
        {
            return Ok(());
        }
        let count = usize::try_from(self.options.posted_receives()).unwrap_or(usize::MAX);
        let mut state = self.state();
        let sends = state.pool.len().saturating_sub(count);
        let mut memory = state.pool.drain(sends..).map(SgList::from).collect();
        drop(state);
        self.post_all(&mut memory)
    }

    fn post_all(&self, memory: &mut Vec<SgList>) -> Result<()> {
        let posted = &self.receive_requests.posted;
        let count = u32::try_from(memory.len()).unwrap_or(u32::MAX);
        // Before the requests can complete.
        posted.fetch_add(count, Ordering::Relaxed);
        let outcome = self.queue_pair.post_receives(memory).map(drop);
        if outcome.is_err() {
            posted.fetch_sub(count, Ordering::Relaxed);
        }
        outcome
    }
}
