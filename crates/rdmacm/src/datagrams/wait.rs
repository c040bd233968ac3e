//! Waiting for a socket.

use std::task::Waker;

use rdmacm_core::{Event, EventKind, IdHandle};

use super::socket::Socket;
use crate::attempt::Attempt;
use crate::data::{Failure, note_closed};
use crate::error::{Cause, Error};
use crate::event_loop::{QueuedEvent, WaitSource, wait_for};
use crate::failed_request::FailedRequest;
use crate::messages::{Interest, State};
use crate::stage::Stage;

impl Socket {
    pub(crate) fn id(&self) -> &IdHandle {
        self.id.id()
    }

    pub(crate) fn fail(&self, attempt: &Attempt, stage: Stage, cause: Cause) -> Error {
        attempt.fail_on(self.id(), stage, cause)
    }

    /// Wakes `waker` when the id or the queue pair reports something. A receiver also waits for
    /// the groups: nobody else takes the loss of one.
    pub(crate) fn register(&self, interest: Interest, key: u64, waker: &Waker) {
        self.id.queue().register(key, waker);
        // Before the groups are looked at: a later one wakes the waiters of the queue pair.
        self.queue_pair.register(interest, key, waker);
        if interest == Interest::ReceiveReady {
            self.groups.register(key, waker);
        }
    }

    pub(crate) fn deregister(&self, interest: Interest, key: u64) {
        if interest == Interest::ReceiveReady {
            self.groups.deregister(key);
        }
        self.queue_pair.deregister(interest, key);
        self.id.queue().deregister(key);
    }

    /// Waits until `take` returns something.
    pub(super) async fn wait<T, F>(
        &self,
        attempt: &Attempt,
        interest: Interest,
        take: F,
    ) -> Result<T, Cause>
    where
        F: FnMut(&Self) -> Option<T> + Unpin,
    {
        let source = SocketSource {
            socket: self,
            interest,
            take,
        };
        Ok(wait_for(&attempt.event_loop, source, attempt.until).await?)
    }

    /// Replies to requests, handles what has completed, and looks at the state and at why
    /// nothing more can be transferred.
    pub(super) fn poll_with<T>(&self, look: impl FnOnce(&mut State, Option<Cause>) -> T) -> T {
        let closed = self.read_events();
        if let Some(kind) = closed {
            note_closed(self.queue_pair.device().context(), kind);
        }
        self.queue_pair.poll_with(|state| {
            let cause = match (state.failure(), closed) {
                (Some(Failure::Device(error)), _) => Some(Cause::device(error.clone())),
                (_, Some(kind)) => Some(Cause::SocketClosed(kind)),
                (Some(Failure::Request(error)), None) => {
                    Some(Cause::Request(FailedRequest::from_completion(error)))
                }
                (Some(Failure::Flushed | Failure::Refused(_)), None) => {
                    Some(Cause::QueuePairFailed)
                }
                (None, None) => None,
            };
            look(state, cause)
        })
    }

    /// Handles events of the id, and returns the one that closed the socket.
    fn read_events(&self) -> Option<EventKind> {
        let queue = self.id.queue();
        while let Some(queued) = queue.pop() {
            match queued {
                QueuedEvent::Cm(event) => match event.kind() {
                    EventKind::ConnectRequest => self.reply(event),
                    kind @ (EventKind::DeviceRemoval | EventKind::AddrChange) => {
                        let _ = self.closed.set(kind);
                        // Wakes all waiters.
                        queue.close();
                    }
                    _ => {}
                },
                QueuedEvent::CommandFailed(_) => {}
                QueuedEvent::Closed => break,
            }
        }
        self.closed.get().copied()
    }

    /// Replies to a request, which is rejected if nothing can be received any more.
    fn reply(&self, request: Event) {
        // What has completed comes first: perhaps nobody knows of the failure yet.
        let has_failed = self.queue_pair.poll_with(|state| state.failure().is_some());
        if !has_failed && self.closed.get().is_none() {
            let number = self.queue_pair.queue_pair().number();
            self.sidr_replies.reply(request, number, self.local.qkey);
        }
    }
}

/// What a caller waits for.
struct SocketSource<'a, F> {
    socket: &'a Socket,
    interest: Interest,
    take: F,
}

impl<T, F: FnMut(&Socket) -> Option<T>> WaitSource for SocketSource<'_, F> {
    type Item = T;

    fn take(&mut self) -> Option<T> {
        (self.take)(self.socket)
    }

    fn register(&mut self, key: u64, waker: &Waker) {
        self.socket.register(self.interest, key, waker);
    }

    fn deregister(&mut self, key: u64) {
        self.socket.deregister(self.interest, key);
    }
}
