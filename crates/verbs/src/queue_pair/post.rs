//! Posting requests to a queue pair.

use super::{QueuePair, QueuedSend};
use crate::completion::{WorkId, WorkIds};
use crate::error::{Error, PostError, Result};
use crate::memory::SgList;
use crate::operation::Operation;
use crate::request::SendRequest;

impl QueuePair {
    /// Posts a request to the send queue, which owns the request's memory until the
    /// [completion](crate::Completion) returns it.
    ///
    /// On siw a request posted after the connection ended, before this side processed the
    /// end, completes when the queue pair [moves](Self::modify) to ERR.
    /// Source: `ibv_post_send(3)`.
    ///
    /// # Errors
    /// [`PostError`] with the request, if nothing was posted: the queue or its completion
    /// queue is full; the request has too many entries or bytes, inline ones too; its memory is of
    /// another domain, not registered for the operation, or longer than the peer's; an atomic is
    /// not of eight aligned bytes; a datagram has no destination, another request has one; the
    /// connection allows no reads and atomics; the queue pair's type or device does not support the
    /// operation; the queue pair is not connected yet, or in the error state.
    ///
    /// [`PostError`] without the request, if the doorbell failed (after a change of
    /// credentials, or when the connection has just ended): the memory stays with the
    /// queue pair until the request completes or the queue pair is
    /// [destroyed](Self::destroy).
    #[doc(
        alias = "ibv_post_send",
        alias = "rdma_post_send",
        alias = "rdma_post_read"
    )]
    #[doc(alias = "rdma_post_write")]
    #[expect(
        clippy::result_large_err,
        reason = "a refused request is moved back, as it was passed"
    )]
    #[inline]
    pub fn post_send<'a>(
        &self,
        request: SendRequest<'a>,
    ) -> Result<WorkId, PostError<Option<SendRequest<'a>>>> {
        self.sends.post(request).map_err(|refused| *refused)
    }

    /// Adds a request to the send queue, as [`post_send`](Self::post_send), without ringing the
    /// doorbell. A device that is busy with earlier requests may process it at once; it does so at
    /// the latest after the doorbell of this request or of a later one. So note its id under a lock
    /// that you also take to poll.
    ///
    /// The first request of a connection, and its first read, make a system call here.
    ///
    /// # Errors
    /// [`PostError`] with the request: those of `post_send` when nothing was posted.
    #[expect(
        clippy::result_large_err,
        reason = "a refused request is moved back, as it was passed"
    )]
    #[inline]
    #[doc(alias = "ibv_post_send")]
    pub fn queue_send<'a>(
        &self,
        request: SendRequest<'a>,
    ) -> Result<QueuedSend<'_>, PostError<SendRequest<'a>>> {
        match self.sends.queue(request) {
            Ok(number) => Ok(QueuedSend::new(&self.sends, self.sends.work(number))),
            Err(refused) => Err(*refused),
        }
    }

    /// Posts several requests to the send queue with one doorbell; all of them or none. Takes
    /// them out of `requests`, an array or a vector, and leaves `None`. If there are none, nothing
    /// is done. Source: `ibv_post_send(3)`.
    ///
    /// # Errors
    /// Those of [`post_send`](Self::post_send). `requests` is unchanged if they were refused,
    /// and has no request left if the doorbell failed.
    #[doc(alias = "ibv_post_send")]
    pub fn post_sends(&self, requests: &mut [Option<SendRequest<'_>>]) -> Result<WorkIds> {
        self.sends.post_all(requests)
    }

    /// Posts a receive request. An empty list is enough for an empty message, or for the
    /// immediate data of a write. Source: `ibv_post_recv(3)`.
    ///
    /// # Errors
    /// [`PostError`] with the memory: the queue or its completion queue is full; the
    /// entries are too many, of another domain, or not registered for local write; the
    /// queue pair is in the error state, or has a shared receive queue.
    #[doc(alias = "ibv_post_recv", alias = "rdma_post_recv")]
    #[inline]
    pub fn post_receive(&self, memory: impl Into<SgList>) -> Result<WorkId, PostError<SgList>> {
        let memory = memory.into();
        let posted = match &self.receives {
            Some(receives) => receives.post(memory),
            None => self.refuse_receive(memory),
        };
        posted.map_err(|refused| *refused)
    }

    #[cold]
    #[inline(never)]
    fn refuse_receive(&self, memory: SgList) -> Result<WorkId, Box<PostError<SgList>>> {
        Err(Box::new(PostError::new(self.no_receives(), memory)))
    }

    /// Posts several receive requests at once; all of them or none. Takes them out of `memory`.
    /// Source: `ibv_post_recv(3)`.
    ///
    /// # Errors
    /// Those of [`post_receive`](Self::post_receive). `memory` is unchanged then.
    #[doc(alias = "ibv_post_recv")]
    pub fn post_receives(&self, memory: &mut Vec<SgList>) -> Result<WorkIds> {
        match &self.receives {
            Some(receives) => receives.post_all(memory),
            None => Err(self.no_receives()),
        }
    }

    #[cold]
    fn no_receives(&self) -> Error {
        let reason = match &self.shared {
            Some(_) => "the queue pair receives from a shared queue: post there",
            None => "the queue pair has no receive queue",
        };
        Error::invalid(Operation::Receive, reason)
    }
}
