//! Transfers of registered memory: messages, reads and writes.

use std::marker::PhantomData;
use std::sync::Arc;

use rdmacm_verbs::{PostError, RemoteMemory, SendOperation, SgList, WorkId};

use super::connection::MessageConnection;
use super::registered_buffer::RegisteredBuffer;
use super::state::{Completed, State};
use super::status::Status;
use super::transfer_error::TransferError;
use super::waiters::Interest;
use crate::attempt::Attempt;
use crate::data::Failure;
use crate::error::Cause;
use crate::event_loop::EventLoop;
use crate::failed_request::FailedRequest;
use crate::stage::Stage;

/// A transfer of the caller's memory that is posted next.
#[derive(Debug)]
pub(crate) struct NewTransfer<B> {
    stage: Stage,
    operation: SendOperation,
    sg_list: SgList,
    buffer: PhantomData<fn() -> B>,
}

impl<B: RegisteredBuffer> NewTransfer<B> {
    pub(crate) fn send(buffer: B) -> Self {
        Self::new(Stage::Send, SendOperation::Send, buffer)
    }

    pub(crate) fn read(into: B, from: RemoteMemory) -> Self {
        Self::new(Stage::Read, SendOperation::Read(from), into)
    }

    pub(crate) fn write(from: B, to: RemoteMemory) -> Self {
        Self::new(Stage::Write, SendOperation::Write(to), from)
    }

    fn new(stage: Stage, operation: SendOperation, buffer: B) -> Self {
        Self {
            stage,
            operation,
            sg_list: SgList::from(buffer.into()),
            buffer: PhantomData,
        }
    }
}

/// A transfer that was not posted, with its memory unless the queue pair has that.
struct Refused<B> {
    transfer: NewTransfer<B>,
    /// `None` if the connection has closed meanwhile: the next status says why.
    cause: Option<Cause>,
}

impl MessageConnection {
    /// Posts a transfer, once there is room for it.
    pub(crate) async fn start<B: RegisteredBuffer>(
        &self,
        transfer: NewTransfer<B>,
    ) -> Result<StartedTransfer<'_, B>, TransferError<B>> {
        self.start_in(&self.transfer_attempt(), transfer).await
    }

    async fn start_in<B: RegisteredBuffer>(
        &self,
        attempt: &Attempt,
        mut transfer: NewTransfer<B>,
    ) -> Result<StartedTransfer<'_, B>, TransferError<B>> {
        loop {
            let reserved = self.wait(attempt.until, Interest::SendReady, reserve_request);
            let reserved = reserved.await.and_then(|reserved| reserved);
            if let Err(cause) = reserved {
                return Err(self.refused(attempt, cause, transfer));
            }
            let refused = match self.post(transfer) {
                Ok(started) => return Ok(started),
                Err(refused) => *refused,
            };
            transfer = refused.transfer;
            if let Some(cause) = refused.cause {
                return Err(self.refused(attempt, cause, transfer));
            }
        }
    }

    /// Posts a transfer without the event loop, if there is room for it now. It comes back if
    /// there is none, or if the connection has an event or has failed.
    pub(crate) fn start_now<B: RegisteredBuffer>(
        &self,
        transfer: NewTransfer<B>,
    ) -> Result<Result<StartedTransfer<'_, B>, TransferError<B>>, NewTransfer<B>> {
        if self.id().queue().is_ready() {
            return Err(transfer);
        }
        let NewTransfer {
            stage,
            operation,
            sg_list,
            ..
        } = transfer;
        let posted = match self.queue_pair().post_now(operation, sg_list) {
            Ok(posted) => posted,
            Err(sg_list) => {
                return Err(NewTransfer {
                    sg_list,
                    ..transfer
                });
            }
        };
        let started = self.started(stage, operation, posted);
        match started.map_err(|refused| *refused) {
            Ok(started) => Ok(Ok(started)),
            Err(Refused {
                transfer,
                cause: None,
            }) => Err(transfer),
            Err(Refused {
                transfer,
                cause: Some(cause),
            }) => {
                let attempt = self.transfer_attempt();
                Ok(Err(self.refused(&attempt, cause, transfer)))
            }
        }
    }

    /// Posts a transfer in the room that was reserved for it.
    fn post<B: RegisteredBuffer>(
        &self,
        transfer: NewTransfer<B>,
    ) -> Result<StartedTransfer<'_, B>, Box<Refused<B>>> {
        let NewTransfer {
            stage,
            operation,
            sg_list,
            ..
        } = transfer;
        let posted = self.queue_pair().post_reserved(operation, sg_list);
        self.started(stage, operation, posted)
    }

    /// The transfer that was posted, or refused.
    fn started<B: RegisteredBuffer>(
        &self,
        stage: Stage,
        operation: SendOperation,
        posted: Result<WorkId, PostError<SgList>>,
    ) -> Result<StartedTransfer<'_, B>, Box<Refused<B>>> {
        let PostError { error, returned } = match posted {
            Ok(work) => {
                if stage == Stage::Send {
                    self.queue_pair().state().counts.sent += 1;
                }
                return Ok(StartedTransfer {
                    connection: self,
                    stage,
                    work,
                    is_over: false,
                    buffer: PhantomData,
                });
            }
            Err(refused) => refused,
        };
        let transfer = NewTransfer {
            stage,
            operation,
            sg_list: returned,
            buffer: PhantomData,
        };
        let cause = self.not_posted(error);
        Err(Box::new(Refused { transfer, cause }))
    }

    fn refused<B: RegisteredBuffer>(
        &self,
        attempt: &Attempt,
        cause: Cause,
        transfer: NewTransfer<B>,
    ) -> TransferError<B> {
        let error = self.fail(attempt, transfer.stage, cause);
        TransferError::new(error, B::from_sg_list(transfer.sg_list))
    }

    /// Posts a transfer, and waits until it completes.
    pub(crate) async fn transfer<B: RegisteredBuffer>(
        &self,
        transfer: NewTransfer<B>,
    ) -> Result<B, TransferError<B>> {
        match self.start_now(transfer) {
            Ok(started) => started?.finish().await,
            Err(transfer) => {
                // One deadline is for both waits.
                let attempt = self.transfer_attempt();
                let started = self.start_in(&attempt, transfer).await?;
                started.finish_in(&attempt).await
            }
        }
    }

    async fn completed<B: RegisteredBuffer>(
        &self,
        attempt: &Attempt,
        stage: Stage,
        (result, sg_list): Completed,
    ) -> Result<B, TransferError<B>> {
        let Err(error) = result else {
            return self.succeeded(stage, sg_list);
        };
        // The connection may have closed for another reason.
        let closed = self.wait(attempt.until, Interest::Closed, |_, status| match status {
            Status::Closed(cause) => Some(cause),
            Status::Open | Status::Failing => None,
        });
        let cause = closed.await;
        let cause = cause.unwrap_or(Cause::Request(FailedRequest::from_completion(&error)));
        let error = self.fail(attempt, stage, cause);
        Err(TransferError::new(error, B::from_sg_list(sg_list)))
    }

    /// The memory of a transfer that has succeeded.
    fn succeeded<B: RegisteredBuffer>(
        &self,
        stage: Stage,
        sg_list: SgList,
    ) -> Result<B, TransferError<B>> {
        B::from_sg_list(sg_list).ok_or_else(|| {
            let error = self.fail(&self.transfer_attempt(), stage, Cause::PeerGone);
            TransferError::new(error, None)
        })
    }
}

/// A request that was posted. If it is dropped before it completes, its memory stays with
/// the queue pair until then, and is freed.
#[derive(Debug)]
pub(crate) struct StartedTransfer<'a, B> {
    connection: &'a MessageConnection,
    stage: Stage,
    work: WorkId,
    /// Its result was taken.
    is_over: bool,
    buffer: PhantomData<fn() -> B>,
}

impl<B: RegisteredBuffer> StartedTransfer<'_, B> {
    pub(crate) fn event_loop(&self) -> &Arc<EventLoop> {
        self.connection.event_loop()
    }

    /// The memory of the request without the event loop, if it has succeeded.
    pub(crate) fn finish_now(mut self) -> Result<Result<B, TransferError<B>>, Self> {
        let Some(sg_list) = self.connection.queue_pair().take_success(self.work) else {
            return Err(self);
        };
        self.is_over = true;
        Ok(self.connection.succeeded(self.stage, sg_list))
    }

    /// Waits until the request completes, and returns its memory.
    pub(crate) async fn finish(self) -> Result<B, TransferError<B>> {
        let attempt = self.connection.transfer_attempt();
        self.finish_in(&attempt).await
    }

    async fn finish_in(mut self, attempt: &Attempt) -> Result<B, TransferError<B>> {
        let Self {
            connection,
            stage,
            work,
            ..
        } = self;
        let interest = Interest::Completion(work);
        let context = connection.queue_pair().device().context();
        let completed = connection.wait(attempt.until, interest, |state, status| {
            match (state.take_completed(work), status) {
                (Some(completed), _) => Some(Ok(completed)),
                // Its requests complete in the parent only.
                (None, Status::Closed(cause)) if context.is_in_child() => Some(Err(cause)),
                // Nobody would be notified of the completion.
                (None, _) => match state.failure() {
                    Some(Failure::Device(error)) => Some(Err(Cause::device(error.clone()))),
                    _ => None,
                },
            }
        });
        match completed.await.and_then(|completed| completed) {
            Ok(completed) => {
                self.is_over = true;
                connection.completed(attempt, stage, completed).await
            }
            Err(cause) => {
                let error = connection.fail(attempt, stage, cause);
                Err(TransferError::new(error, None))
            }
        }
    }

    /// Whether the request has completed.
    pub(crate) fn is_finished(&self) -> bool {
        let (work, context) = (self.work, self.connection.queue_pair().device().context());
        self.connection.poll_with(|state, status| {
            let is_lost = context.is_in_child() && matches!(status, Status::Closed(_));
            is_lost || !state.is_in_flight(work)
        })
    }
}

impl<B> Drop for StartedTransfer<'_, B> {
    fn drop(&mut self) {
        let queue_pair = self.connection.queue_pair();
        // A thread of the parent may have held the lock at the fork.
        if !self.is_over && !queue_pair.device().context().is_in_child() {
            queue_pair.abandon(self.work);
        }
    }
}

fn reserve_request(state: &mut State, status: Status) -> Option<Result<(), Cause>> {
    match status {
        Status::Open => state.reserve().then_some(Ok(())),
        Status::Failing => None,
        Status::Closed(cause) => Some(Err(cause)),
    }
}
