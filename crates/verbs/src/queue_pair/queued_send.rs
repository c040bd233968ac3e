//! A request whose doorbell was not rung.

use crate::completion::WorkId;
use crate::error::Result;
use crate::work_queue::{Number, SendQueue};

/// A request in a send queue, by [`queue_send`](super::QueuePair::queue_send). The device may not
/// have been told of it.
#[derive(Debug)]
#[must_use = "the device processes it once the doorbell is rung"]
pub struct QueuedSend<'a> {
    queue: &'a SendQueue,
    number: Number,
}

impl<'a> QueuedSend<'a> {
    #[inline]
    pub(super) fn new(queue: &'a SendQueue, number: Number) -> Self {
        Self { queue, number }
    }

    /// The id of the request.
    #[must_use]
    #[inline]
    pub fn work(&self) -> WorkId {
        self.queue.work(self.number)
    }

    /// Has the device process it: one system call.
    ///
    /// # Errors
    /// [`Error::Command`](crate::Error::Command) after a change of credentials, or when the
    /// connection has just ended: the request's memory stays with the queue pair until the request
    /// completes or the queue pair is [destroyed](super::QueuePair::destroy).
    /// [`Error::Gone`](crate::Error::Gone) if the device was removed.
    #[inline]
    pub fn ring_doorbell(self) -> Result<()> {
        self.queue.ring_doorbell_of(self.number)
    }
}
