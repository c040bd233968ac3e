//! Where the peer's messages arrive.

use std::sync::{Arc, OnceLock};

use rdmacm_verbs::{Completion, CompletionQueue, Result};

use super::shared_receives::{Inbox, SharedReceives};
use super::status::Wakers;

/// Where the peer's messages arrive.
#[derive(Debug)]
pub(super) enum ReceiveQueue {
    /// On a completion queue of the stream's own.
    Own(CompletionQueue),
    /// In the stream's inbox.
    Shared(SharedReceiveQueue),
}

/// A stream's part of receives that it shares.
#[derive(Debug)]
pub(super) struct SharedReceiveQueue {
    pub(super) receives: Arc<SharedReceives>,
    pub(super) qp_number: u32,
    /// Set before the peer can send.
    pub(super) inbox: OnceLock<Arc<Inbox>>,
}

impl ReceiveQueue {
    /// The next message of the peer, or a failure of receiving one.
    #[inline]
    pub(super) fn next(&self, wakers: &mut Wakers) -> Result<Option<Completion>> {
        match self {
            Self::Own(completions) => completions.poll(),
            Self::Shared(shared) => match shared.inbox.get() {
                Some(inbox) => shared.receives.next(inbox, wakers),
                None => Ok(None),
            },
        }
    }

    /// Whether other streams have the same queue. A queue pair that fails completes its own
    /// receive requests, but not shared ones: its failure is in its send queue.
    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    /// Whether messages were handed out that were not taken.
    pub(super) fn has_more(&self) -> bool {
        match self {
            Self::Own(_) => false,
            Self::Shared(shared) => shared.inbox.get().is_some_and(|inbox| inbox.has_messages()),
        }
    }

    /// Whether there may be a message.
    #[inline]
    pub(super) fn has_any(&self) -> bool {
        match self {
            Self::Own(completions) => completions.has_completions(),
            Self::Shared(shared) => {
                self.has_more() || shared.receives.completions().has_completions()
            }
        }
    }
}

impl Drop for SharedReceiveQueue {
    /// After the queue pair.
    fn drop(&mut self) {
        if let Some(inbox) = self.inbox.get() {
            self.receives.remove(self.qp_number, inbox);
        }
    }
}
