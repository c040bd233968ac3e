//! Giving a queue pair work.

use super::QueuePair;
use crate::completion::WorkId;
use crate::error::{Error, PostError};
use crate::memory::SgList;
use crate::operation::Operation;
use crate::request::SendRequest;

impl QueuePair {
    /// Posts a request to the send queue. It owns the request's memory until it
    /// gives it back with the [completion](crate::Completion).
    ///
    /// On siw a request that is posted after the connection has ended, because this side
    /// has not heard of that yet, completes when the queue pair is
    /// [moved](Self::modify) to ERR.
    ///
    /// # Errors
    /// [`PostError`] with the request, and nothing has happened: it is more than the
    /// queue or its completion queue has room for, or the queue pair's requests may
    /// name; its memory is of another domain, not registered for this, or shorter
    /// or longer than the peer's; the queue pair's type or device cannot do it; the
    /// queue pair is not connected yet, or in the error state.
    ///
    /// Without the request, where the device could not be told of it (after a change
    /// of credentials, or when the connection has just ended): its memory stays
    /// with the queue pair, until it completes or the queue pair is
    /// [destroyed](Self::destroy).
    #[doc(
        alias = "ibv_post_send",
        alias = "rdma_post_send",
        alias = "rdma_post_read"
    )]
    #[doc(alias = "rdma_post_write")]
    #[expect(
        clippy::result_large_err,
        reason = "a request that comes back is moved, as it came"
    )]
    pub fn post_send<'a>(
        &self,
        request: SendRequest<'a>,
    ) -> Result<WorkId, PostError<Option<SendRequest<'a>>>> {
        self.sends.post(request)
    }

    /// Posts several requests to the send queue and tells the device once; all of
    /// them or none.
    ///
    /// # Errors
    /// Those of [`post_send`](Self::post_send), with all requests or without any.
    #[doc(alias = "ibv_post_send")]
    pub fn post_sends<'a>(
        &self,
        requests: Vec<SendRequest<'a>>,
    ) -> Result<Vec<WorkId>, PostError<Vec<SendRequest<'a>>>> {
        self.sends.post_all(requests)
    }

    /// Posts memory to receive a message into; none is enough for an empty one, or
    /// for the word of a write.
    ///
    /// # Errors
    /// [`PostError`] with the memory: the queue or its completion queue is full, the
    /// pieces are too many, of another domain, or not registered for writing; the
    /// queue pair is in the error state, or receives from a shared queue.
    #[doc(alias = "ibv_post_recv", alias = "rdma_post_recv")]
    pub fn post_receive(&self, memory: impl Into<SgList>) -> Result<WorkId, PostError<SgList>> {
        let memory = memory.into();
        let Some(receives) = &self.receives else {
            let reason = match &self.shared {
                Some(_) => "the queue pair receives from a shared queue: post there",
                None => "the queue pair has no receive queue",
            };
            let error = Error::invalid(Operation::Receive, reason);
            return Err(PostError::new(error, memory));
        };
        receives.post(memory)
    }
}
