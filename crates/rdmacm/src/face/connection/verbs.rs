//! The queue pair of a connection, posted to by hand.

use rdmacm_core::Deadline;
use rdmacm_verbs::{
    Completion, CompletionQueue, Pieces, QueuePair, Refused, RemoteMemory, Result, SendOperation,
    SendRequest, WorkId,
};

use super::super::endpoint::post_receive;
use super::Connection;
#[cfg(doc)]
use crate::error::Cause;
use crate::hub::block_on;
use crate::mode::{Async, Blocking, Mode};
use crate::reactor::Runtime;
use crate::step::Step;
use crate::steps::by_hand;

/// What librdmacm's helpers of `rdma_verbs.h` do: see
/// [`queue_pair`](Connection::queue_pair) for all the rest.
impl<M: Mode> Connection<QueuePair, M> {
    /// Posts memory to receive a message into: to the queue pair, or to the shared
    /// queue it receives from.
    ///
    /// # Errors
    /// Those of [`QueuePair::post_receive`].
    #[doc(alias = "rdma_post_recv", alias = "rdma_post_recvv")]
    pub fn post_receive(&self, memory: impl Into<Pieces>) -> Result<WorkId, Refused<Pieces>> {
        post_receive(self.queue_pair(), memory)
    }

    /// Posts a message.
    ///
    /// # Errors
    /// Those of [`QueuePair::post_send`].
    #[doc(alias = "rdma_post_send", alias = "rdma_post_sendv")]
    pub fn post_send(&self, memory: impl Into<Pieces>) -> Result<WorkId, Refused<Pieces>> {
        self.post(SendOperation::Send, memory.into())
    }

    /// Posts a read of memory that the peer exposes.
    ///
    /// # Errors
    /// Those of [`QueuePair::post_send`].
    #[doc(alias = "rdma_post_read", alias = "rdma_post_readv")]
    pub fn post_read(
        &self,
        into: impl Into<Pieces>,
        from: RemoteMemory,
    ) -> Result<WorkId, Refused<Pieces>> {
        self.post(SendOperation::Read(from), into.into())
    }

    /// Posts a write to memory that the peer exposes.
    ///
    /// # Errors
    /// Those of [`QueuePair::post_send`].
    #[doc(alias = "rdma_post_write", alias = "rdma_post_writev")]
    pub fn post_write(
        &self,
        from: impl Into<Pieces>,
        to: RemoteMemory,
    ) -> Result<WorkId, Refused<Pieces>> {
        self.post(SendOperation::Write(to), from.into())
    }

    fn post(&self, operation: SendOperation, memory: Pieces) -> Result<WorkId, Refused<Pieces>> {
        let posted = self
            .queue_pair()
            .post_send(SendRequest::new(operation, memory));
        posted.map_err(|refused| Refused {
            error: refused.error,
            returned: refused
                .returned
                .map(SendRequest::into_pieces)
                .unwrap_or_default(),
        })
    }
}

impl<M: Mode> Connection<QueuePair, M> {
    async fn next_async(
        &self,
        step: Step,
        queue: &CompletionQueue,
        deadline: Deadline,
    ) -> crate::Result<Completion> {
        let attempt = self.attempt(deadline);
        by_hand::next_completion(&attempt, self.tracked(), queue, step).await
    }
}

impl Connection<QueuePair, Blocking> {
    /// Waits for the next request that was sent to complete. Takes a queue pair that
    /// is [`waitable`]. Any number of threads may wait; each completion goes to one of
    /// them. They are to wait on one node, and not on the queue or its channel as well,
    /// which would take what the channel tells.
    ///
    /// [`waitable`]: rdmacm_verbs::QpOptions::waitable
    ///
    /// # Errors
    /// [`Cause::Ended`] once the connection is over and nothing more has completed;
    /// what was under way then may complete before that, as flushed. [`Cause::Verbs`]
    /// where the device has gone, and what was under way has been told, or the queue
    /// pair is not waitable. [`Cause::Deadline`]: nothing completed in time.
    #[doc(alias = "rdma_get_send_comp")]
    pub fn next_sent(&self, deadline: impl Into<Deadline>) -> crate::Result<Completion> {
        let queue = self.queue_pair().send_queue();
        let next = self.next_async(Step::Send, queue, deadline.into());
        block_on(self.tracked().hub(), next)
    }

    /// Waits for the next message that is received, as [`next_sent`](Self::next_sent).
    ///
    /// # Errors
    /// Those of [`next_sent`](Self::next_sent).
    #[doc(alias = "rdma_get_recv_comp")]
    pub fn next_received(&self, deadline: impl Into<Deadline>) -> crate::Result<Completion> {
        let queue = self.queue_pair().receive_queue();
        let next = self.next_async(Step::Receive, queue, deadline.into());
        block_on(self.tracked().hub(), next)
    }
}

impl<R: Runtime> Connection<QueuePair, Async<R>> {
    /// Waits for the next request that was sent to complete. Takes a queue pair that
    /// is [`waitable`]. Any number of tasks may wait; each completion goes to one of
    /// them, and dropping the future loses none. They are to wait on one node, and not
    /// on the queue or its channel as well, which would take what the channel tells.
    ///
    /// [`waitable`]: rdmacm_verbs::QpOptions::waitable
    ///
    /// # Errors
    /// [`Cause::Ended`] once the connection is over and nothing more has completed;
    /// what was under way then may complete before that, as flushed. [`Cause::Verbs`]
    /// where the device has gone, and what was under way has been told, or the queue
    /// pair is not waitable. [`Cause::Deadline`]: nothing completed in time.
    #[doc(alias = "rdma_get_send_comp")]
    pub async fn next_sent(&self, deadline: impl Into<Deadline>) -> crate::Result<Completion> {
        let queue = self.queue_pair().send_queue();
        self.next_async(Step::Send, queue, deadline.into()).await
    }

    /// Waits for the next message that is received, as [`next_sent`](Self::next_sent).
    ///
    /// # Errors
    /// Those of [`next_sent`](Self::next_sent).
    #[doc(alias = "rdma_get_recv_comp")]
    pub async fn next_received(&self, deadline: impl Into<Deadline>) -> crate::Result<Completion> {
        let queue = self.queue_pair().receive_queue();
        self.next_async(Step::Receive, queue, deadline.into()).await
    }
}
