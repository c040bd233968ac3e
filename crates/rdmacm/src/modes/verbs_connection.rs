//! A connection whose queue pair the caller posts to.

use rdmacm_core::Deadline;
use rdmacm_verbs::{
    Completion, PostError, QueuePair, RemoteMemory, Result, SendOperation, SendRequest, SgList,
    WorkId,
};

use super::CmConnection;
#[cfg(doc)]
use crate::Cause;
use crate::data::CqKind;
use crate::endpoint::{next_completion, post_receive};

/// What the helpers of librdmacm's `rdma_verbs.h` do. For everything else use the
/// [`queue_pair`](CmConnection::queue_pair).
impl CmConnection<QueuePair> {
    /// Posts memory to receive a message into: to the queue pair, or to the shared queue that
    /// it receives from.
    ///
    /// # Errors
    /// Those of [`QueuePair::post_receive`].
    #[doc(alias = "rdma_post_recv", alias = "rdma_post_recvv")]
    pub fn post_receive(&self, memory: impl Into<SgList>) -> Result<WorkId, PostError<SgList>> {
        post_receive(self.queue_pair(), memory)
    }

    /// Posts a message.
    ///
    /// # Errors
    /// Those of [`QueuePair::post_send`].
    #[doc(alias = "rdma_post_send", alias = "rdma_post_sendv")]
    pub fn post_send(&self, memory: impl Into<SgList>) -> Result<WorkId, PostError<SgList>> {
        self.post(SendOperation::Send, memory.into())
    }

    /// Posts a read of memory that the peer exposes; see [`SendOperation::Read`] for what siw does
    /// wrong.
    ///
    /// # Errors
    /// Those of [`QueuePair::post_send`].
    #[doc(alias = "rdma_post_read", alias = "rdma_post_readv")]
    pub fn post_read(
        &self,
        into: impl Into<SgList>,
        from: RemoteMemory,
    ) -> Result<WorkId, PostError<SgList>> {
        self.post(SendOperation::Read(from), into.into())
    }

    /// Posts a write to memory that the peer exposes.
    ///
    /// # Errors
    /// Those of [`QueuePair::post_send`].
    #[doc(alias = "rdma_post_write", alias = "rdma_post_writev")]
    pub fn post_write(
        &self,
        from: impl Into<SgList>,
        to: RemoteMemory,
    ) -> Result<WorkId, PostError<SgList>> {
        self.post(SendOperation::Write(to), from.into())
    }

    fn post(&self, operation: SendOperation, memory: SgList) -> Result<WorkId, PostError<SgList>> {
        let request = SendRequest::new(operation, memory);
        let posted = self.queue_pair().post_send(request);
        posted.map_err(|refused| PostError {
            error: refused.error,
            returned: refused
                .returned
                .map(SendRequest::into_sg_list)
                .unwrap_or_default(),
        })
    }

    waits! {
        /// Waits for the completion of the next request that was sent. The queue pair must be
        /// created [`with_completion_channels`]. Any number of callers may wait; each completion
        /// goes to one of them. They must wait on the same node, and not on the queue or its
        /// channel as well, which would take the channel's notifications.
        ///
        /// [`with_completion_channels`]: rdmacm_verbs::QpOptions::with_completion_channels
        awaited {
            ///
            /// Dropping the future loses none.
        }
        both {
            ///
            /// # Errors
            /// [`Cause::Closed`] once the connection is closed and nothing more completes: requests
            /// that were in flight complete before, as flushed. [`Cause::Device`] if the device's
            /// context is closed and all requests have completed, or the queue pair has no
            /// completion channel. [`Cause::Deadline`]: nothing completed in time.
            #[doc(alias = "rdma_get_send_comp")]
        }
        pub fn next_sent(&self, deadline: impl Into<Deadline>) -> crate::Result<Completion> {
            self.established().id.event_loop() => async {
                let attempt = self.attempt(deadline.into());
                let queue_pair = self.queue_pair();
                next_completion(&attempt, self.established(), queue_pair, CqKind::Sends).await
            }
        }
    }

    waits! {
        /// Waits for the next message that is received, as [`next_sent`](Self::next_sent).
        ///
        /// # Errors
        /// Those of [`next_sent`](Self::next_sent).
        #[doc(alias = "rdma_get_recv_comp")]
        pub fn next_received(&self, deadline: impl Into<Deadline>) -> crate::Result<Completion> {
            self.established().id.event_loop() => async {
                let attempt = self.attempt(deadline.into());
                let queue_pair = self.queue_pair();
                next_completion(&attempt, self.established(), queue_pair, CqKind::Receives).await
            }
        }
    }
}
