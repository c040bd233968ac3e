//! Posting receive requests.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::{Mutex, MutexGuard};
use rdmacm_verbs::{Buffer, Result, SgList};

use super::MessageQueuePair;
use crate::messages::options::MessageOptions;

/// The receive requests of a queue pair. The memory of messages that were received is posted
/// again several pieces at a time, so there are more requests than the options say.
#[derive(Debug)]
pub(super) struct ReceiveRequests {
    /// How many the device has.
    posted: AtomicU32,
    are_posted: AtomicBool,
    /// Memory to post again once there are `batch` pieces of it.
    returned: Mutex<Vec<SgList>>,
    batch: usize,
}

impl ReceiveRequests {
    pub(super) fn new(options: &MessageOptions) -> Self {
        let batch = usize::try_from(options.receive_batch()).unwrap_or(1);
        Self {
            posted: AtomicU32::new(0),
            are_posted: AtomicBool::new(false),
            returned: Mutex::new(Vec::with_capacity(batch)),
            batch,
        }
    }

    /// Whether the device has any.
    pub(super) fn is_any_posted(&self) -> bool {
        self.posted.load(Ordering::Relaxed) > 0
    }

    pub(super) fn completed(&self) {
        self.posted.fetch_sub(1, Ordering::Relaxed);
    }

    fn returned(&self) -> MutexGuard<'_, Vec<SgList>> {
        self.returned.lock()
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

    /// Has the memory of a message receive another one. Once the connection is closed, it is
    /// freed instead.
    pub(crate) fn post_receive(&self, buffer: Buffer) {
        let mut returned = self.receive_requests.returned();
        returned.push(buffer.into());
        if returned.len() < self.receive_requests.batch {
            return;
        }
        if self.post_all(&mut returned).is_err() {
            let memory = std::mem::take(&mut *returned);
            drop(returned);
            // Not under the lock: dropping the last reference to memory is a system call.
            drop(memory);
        }
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
