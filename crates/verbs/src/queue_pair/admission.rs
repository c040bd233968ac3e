//! The place of a new queue pair in a completion queue.

use crate::completion_queue::CompletionQueue;
use crate::request_id::QueueIndex;
use crate::shared_receive_queue::SharedReceiveQueue;

/// A place in a completion queue, which is given up again unless it is [kept](Self::keep).
pub(super) struct Admission<'queue> {
    queue: &'queue CompletionQueue,
    index: QueueIndex,
    is_kept: bool,
}

impl<'queue> Admission<'queue> {
    /// A place for a queue of the queue pair's own.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn own(queue: &'queue CompletionQueue) -> Result<Self, &'static str> {
        let index = queue.reserve_index();
        let reason = "its completion queue serves as many queue pairs as it can";
        index.ok_or(reason).map(|index| Self::at(queue, index))
    }

    /// A place as one of the queue pairs of a shared receive queue.
    ///
    /// # Errors
    /// The completion queue has too few entries.
    pub(super) fn shared(
        queue: &'queue CompletionQueue,
        shared: &SharedReceiveQueue,
    ) -> Result<Self, &'static str> {
        if !queue.admit_shared(shared.queue(), shared.capacity()) {
            return Err("its completion queue must have room for all of the shared receive queue");
        }
        Ok(Self::at(queue, shared.index()))
    }

    fn at(queue: &'queue CompletionQueue, index: QueueIndex) -> Self {
        Self {
            queue,
            index,
            is_kept: false,
        }
    }

    /// The index; the place stays until the queue pair is destroyed.
    pub(super) fn keep(mut self) -> QueueIndex {
        self.is_kept = true;
        self.index
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            // Nothing was posted yet.
            drop(self.queue.dismiss(self.index, None));
        }
    }
}
