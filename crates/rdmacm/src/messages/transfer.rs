//! Transfers of registered memory: messages, reads and writes.

use std::marker::PhantomData;
use std::sync::Arc;

use rdmacm_verbs::{PostError, SendOperation, SgList, WorkId};

use super::connection::{MessageConnection, Status};
use super::failure::Failure;
use super::registered_buffer::RegisteredBuffer;
use super::state::{Completed, State};
use super::transfer_error::TransferError;
use super::waiters::Interest;
use super::{device_error, failed_request};
use crate::connect::Attempt;
use crate::error::Cause;
use crate::event_loop::EventLoop;
use crate::stage::Stage;

impl MessageConnection {
    /// Posts a request with the caller's memory, once there is room for it.
    pub(crate) async fn start<B: RegisteredBuffer>(
        &self,
        stage: Stage,
        operation: SendOperation,
        buffer: B,
    ) -> Result<StartedTransfer<'_, B>, TransferError<B>> {
        let attempt = self.transfer_attempt();
        let failed = |cause, sg_list| {
            let error = self.fail(&attempt, stage, cause);
            TransferError::new(error, B::from_pieces(sg_list))
        };
        let mut sg_list = SgList::from(buffer.into());
        loop {
            let reserved = self.wait(&attempt, Interest::Room, reserve_request);
            let reserved = reserved.await.and_then(|reserved| reserved);
            if let Err(cause) = reserved {
                return Err(failed(cause, sg_list));
            }
            match self.queue_pair().post_reserved(operation, sg_list) {
                Ok(work) => {
                    self.queue_pair().state().counts.sent += u64::from(stage == Stage::Send);
                    return Ok(StartedTransfer {
                        connection: self,
                        stage,
                        work,
                        buffer: PhantomData,
                    });
                }
                Err(PostError { error, returned })
                    if self.queue_pair().is_refused_closed(&error) =>
                {
                    sg_list = returned;
                    self.queue_pair().fail(Failure::Refused(error));
                }
                Err(PostError { error, returned }) => {
                    return Err(failed(device_error(error), returned));
                }
            }
        }
    }

    /// Posts a request with the caller's memory, and waits until it completes.
    pub(crate) async fn transfer<B: RegisteredBuffer>(
        &self,
        stage: Stage,
        operation: SendOperation,
        buffer: B,
    ) -> Result<B, TransferError<B>> {
        self.start(stage, operation, buffer).await?.finish().await
    }

    async fn finish<B: RegisteredBuffer>(
        &self,
        stage: Stage,
        work: WorkId,
    ) -> Result<B, TransferError<B>> {
        let attempt = self.transfer_attempt();
        let interest = Interest::Completion(work);
        let completed = self.wait(&attempt, interest, |state, _| state.take_completed(work));
        match completed.await {
            Ok(completed) => self.completed(&attempt, stage, completed).await,
            Err(cause) => {
                let error = self.fail(&attempt, stage, cause);
                Err(TransferError::new(error, None))
            }
        }
    }

    async fn completed<B: RegisteredBuffer>(
        &self,
        attempt: &Attempt,
        stage: Stage,
        (result, sg_list): Completed,
    ) -> Result<B, TransferError<B>> {
        let buffer = B::from_pieces(sg_list);
        let cause = match (result, buffer) {
            (Ok(_), Some(buffer)) => return Ok(buffer),
            (Ok(_), None) => Cause::PeerGone,
            (Err(error), buffer) => {
                // The connection may have closed for another reason.
                let closed = self.wait(attempt, Interest::Closed, |_, status| match status {
                    Status::Closed(cause) => Some(cause),
                    Status::Open | Status::Failing => None,
                });
                let cause = closed.await;
                let cause = cause.unwrap_or(Cause::Request(failed_request(&error)));
                return Err(TransferError::new(self.fail(attempt, stage, cause), buffer));
            }
        };
        Err(TransferError::new(self.fail(attempt, stage, cause), None))
    }
}

/// A request that was posted. If it is dropped before it completes, its memory stays with
/// the queue pair until then, and is freed.
#[derive(Debug)]
pub(crate) struct StartedTransfer<'a, B> {
    connection: &'a MessageConnection,
    stage: Stage,
    work: WorkId,
    buffer: PhantomData<fn() -> B>,
}

impl<B: RegisteredBuffer> StartedTransfer<'_, B> {
    pub(crate) fn event_loop(&self) -> &Arc<EventLoop> {
        self.connection.event_loop()
    }

    /// Waits until the request completes, and returns its memory.
    pub(crate) async fn finish(self) -> Result<B, TransferError<B>> {
        self.connection.finish(self.stage, self.work).await
    }

    /// Whether the request has completed.
    pub(crate) fn is_finished(&self) -> bool {
        let work = self.work;
        self.connection
            .poll_with(|state, _| !state.is_in_flight(work))
    }
}

impl<B> Drop for StartedTransfer<'_, B> {
    fn drop(&mut self) {
        self.connection.queue_pair().abandon(self.work);
    }
}

fn reserve_request(state: &mut State, status: Status) -> Option<Result<(), Cause>> {
    match status {
        Status::Open => state.reserve().then_some(Ok(())),
        Status::Failing => None,
        Status::Closed(cause) => Some(Err(cause)),
    }
}
