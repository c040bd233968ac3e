//! The queue pair of a connection, posted to by hand.

use rdmacm_core::Deadline;
use rdmacm_verbs::{
    Completion, Pieces, QueuePair, Refused, RemoteMemory, Result, SendOperation, SendRequest,
    WorkId,
};

use super::Connection;
use crate::mode::{Blocking, Mode};

/// What librdmacm's helpers of `rdma_verbs.h` do: see
/// [`queue_pair`](Connection::queue_pair) for all the rest.
impl<M: Mode> Connection<QueuePair, M> {
    /// Posts memory to receive a message into.
    ///
    /// # Errors
    /// Those of [`QueuePair::post_receive`].
    #[doc(alias = "rdma_post_recv", alias = "rdma_post_recvv")]
    pub fn post_receive(&self, memory: impl Into<Pieces>) -> Result<WorkId, Refused<Pieces>> {
        self.queue_pair().post_receive(memory)
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

impl Connection<QueuePair, Blocking> {
    /// The next request that was sent, waited for until the deadline; `None` when it
    /// has come. Takes a queue pair that is [`waitable`]. While a thread is here it
    /// does not read of the peer's parting: whoever waits for
    /// [`ended`](Connection::ended) does.
    ///
    /// [`waitable`]: rdmacm_verbs::QpOptions::waitable
    ///
    /// # Errors
    /// Those of [`CompletionQueue::next`](rdmacm_verbs::CompletionQueue::next).
    #[doc(alias = "rdma_get_send_comp")]
    pub fn next_sent(&self, deadline: impl Into<Deadline>) -> Result<Option<Completion>> {
        self.queue_pair().send_queue().next(deadline)
    }

    /// The next message that was received, as [`next_sent`](Self::next_sent).
    ///
    /// # Errors
    /// Those of [`CompletionQueue::next`](rdmacm_verbs::CompletionQueue::next).
    #[doc(alias = "rdma_get_recv_comp")]
    pub fn next_received(&self, deadline: impl Into<Deadline>) -> Result<Option<Completion>> {
        self.queue_pair().receive_queue().next(deadline)
    }
}
