//! Where the peer's messages arrive.

use std::sync::{Arc, OnceLock};

use rdmacm_verbs::{Completion, CompletionQueue, Result};

use super::shared_receives::{MessageQueue, SharedReceives};
use crate::event_loop::Wakers;

/// Where the peer's messages arrive.
#[derive(Debug)]
pub(super) enum ReceiveQueue {
    /// On a completion queue of the stream's own.
    Own(CompletionQueue),
    /// In the stream's queue of messages.
    Shared(SharedReceivesRegistration),
}

/// A stream's part of receives that it shares.
#[derive(Debug)]
pub(super) struct SharedReceivesRegistration {
    pub(super) receives: Arc<SharedReceives>,
    pub(super) qp_number: u32,
    /// Set before the peer can send.
    pub(super) queue: OnceLock<Arc<MessageQueue>>,
}

impl SharedReceivesRegistration {
    /// The next message of the peer, or a failure of receiving one.
    pub(super) fn next(&self, wakers: &mut Wakers) -> Result<Option<Completion>> {
        match self.queue.get() {
            Some(queue) => self.receives.next(queue, wakers),
            None => Ok(None),
        }
    }

    /// Whether messages were dispatched to this stream that were not taken.
    pub(super) fn has_more(&self) -> bool {
        self.queue.get().is_some_and(|queue| queue.has_messages())
    }
}

impl ReceiveQueue {
    /// Whether other streams have the same queue. A queue pair that fails completes its own
    /// receive requests, but not shared ones: its failure is in its send queue.
    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    /// Whether there may be a message.
    #[inline]
    pub(super) fn has_any(&self) -> bool {
        match self {
            Self::Own(completions) => completions.has_completions(),
            Self::Shared(shared) => {
                shared.has_more() || shared.receives.completions().has_completions()
            }
        }
    }

    /// As [`has_any`](Self::has_any), for a caller that looks again, or later.
    #[inline]
    pub(super) fn may_have_any(&self) -> bool {
        match self {
            Self::Own(completions) => completions.may_have_completions(),
            Self::Shared(_) => self.has_any(),
        }
    }
}

impl Drop for SharedReceivesRegistration {
    /// After the queue pair.
    fn drop(&mut self) {
        if let Some(queue) = self.queue.get() {
            self.receives.remove(self.qp_number, queue);
        }
    }
}
