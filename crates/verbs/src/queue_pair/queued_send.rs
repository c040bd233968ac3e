//! A request whose doorbell was not rung.

use crate::completion::WorkId;
use crate::error::Result;
use crate::work_queue::SendQueue;

/// A request in a send queue, by [`queue_send`](super::QueuePair::queue_send), whose doorbell was
/// not rung. If this is dropped, the request stays in the queue, and may not complete before the
/// doorbell of a later request is rung.
#[derive(Debug)]
#[must_use = "the request may not complete before a doorbell is rung"]
pub struct QueuedSend<'a> {
    queue: &'a SendQueue,
    work: WorkId,
}

impl<'a> QueuedSend<'a> {
    #[inline]
    pub(super) fn new(queue: &'a SendQueue, work: WorkId) -> Self {
        Self { queue, work }
    }

    /// The id of the request.
    #[must_use]
    #[inline]
    pub fn work(&self) -> WorkId {
        self.work
    }

    /// Has the device process it: one system call. It may have completed already, or have been
    /// discarded by a reset.
    ///
    /// # Errors
    /// [`Error::Command`](crate::Error::Command) after a change of credentials, or when the
    /// connection has just ended: the request's memory stays with the queue pair until the request
    /// completes or the queue pair is [destroyed](super::QueuePair::destroy).
    /// [`Error::ContextClosed`](crate::Error::ContextClosed) if the context is closed.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each request")]
    pub fn ring_doorbell(self) -> Result<()> {
        self.queue.ring_doorbell_of(self.work.number)
    }
}
