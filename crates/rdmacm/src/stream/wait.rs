//! Waiting for a stream.

use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use rdmacm_core::Error;

use super::connection::StreamConnection;
use super::status::StreamInterest;
use crate::error::Cause;
use crate::event_loop::{Registration, WaitSource, WaiterKind};

/// A wait of one caller, until a deadline. It also sends keep-alives.
#[derive(Debug)]
pub(super) struct StreamWait<'a> {
    connection: &'a StreamConnection,
    interest: StreamInterest,
    until: Option<Instant>,
    registered: Option<Registered>,
}

/// A registration with an event loop, and the timer that it was made for.
#[derive(Debug)]
struct Registered {
    registration: Registration,
    keep_alive: Option<Instant>,
}

impl<'a> StreamWait<'a> {
    /// Of a caller that has looked just now.
    pub(super) fn after_look(
        connection: &'a StreamConnection,
        interest: StreamInterest,
        until: Option<Instant>,
    ) -> Self {
        Self {
            connection,
            interest,
            until,
            registered: None,
        }
    }

    pub(super) fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        take: &mut dyn FnMut() -> Option<T>,
    ) -> Poll<Result<T, Cause>> {
        if self.registered.is_none() {
            self.connection.end_polling(self.interest);
        }
        let polled = poll(
            self.connection,
            WaiterKind::Future,
            self.interest,
            self.until,
            &mut self.registered,
            context,
            take,
        );
        if polled.is_ready() {
            end(self.connection, self.interest, &mut self.registered);
        }
        polled
    }
}

impl Drop for StreamWait<'_> {
    fn drop(&mut self) {
        end(self.connection, self.interest, &mut self.registered);
    }
}

/// The waker of the last caller of a `poll_` method, which outlives the call.
#[derive(Debug, Default)]
pub(super) struct PollSlot(Mutex<Option<Registered>>);

impl PollSlot {
    pub(super) fn poll<T>(
        &self,
        connection: &StreamConnection,
        interest: StreamInterest,
        context: &mut Context<'_>,
        take: &mut dyn FnMut() -> Option<T>,
    ) -> Poll<Result<T, Cause>> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            // Mostly there is nothing to wait for.
            if let Some(item) = take() {
                return Poll::Ready(Ok(item));
            }
        }
        let kind = WaiterKind::Caller;
        let polled = poll(connection, kind, interest, None, &mut slot, context, take);
        if polled.is_ready() {
            end(connection, interest, &mut slot);
        }
        polled
    }

    /// Ends the wait of the last caller, and wakes it.
    pub(super) fn end(&self, connection: &StreamConnection, interest: StreamInterest) {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waker = end(connection, interest, &mut slot);
        drop(slot);
        // One who still waits polls again.
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The caller has looked just now if it is not registered yet.
fn poll<T>(
    connection: &StreamConnection,
    kind: WaiterKind,
    interest: StreamInterest,
    until: Option<Instant>,
    slot: &mut Option<Registered>,
    context: &mut Context<'_>,
    take: &mut dyn FnMut() -> Option<T>,
) -> Poll<Result<T, Cause>> {
    let event_loop = connection.event_loop();
    loop {
        let keep_alive = connection.keep_alive_due();
        if slot
            .as_ref()
            .is_some_and(|registered| registered.keep_alive != keep_alive)
        {
            end(connection, interest, slot);
        }
        let by = [until, keep_alive].into_iter().flatten().min();
        let registered = slot.get_or_insert_with(|| Registered {
            registration: Registration::after_look(event_loop, kind, by),
            keep_alive,
        });
        let mut source = StreamSource {
            connection,
            interest,
            take: &mut *take,
        };
        let polled = registered
            .registration
            .poll(event_loop, &mut source, context);
        match polled {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(item)) => return Poll::Ready(Ok(item)),
            Poll::Ready(Err(Error::DeadlinePassed)) if until != by => {
                connection.queue_pair().send_keep_alive(event_loop.now());
            }
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
        }
        // The timer has changed.
        end(connection, interest, slot);
    }
}

/// Returns the waker of a task.
fn end(
    connection: &StreamConnection,
    interest: StreamInterest,
    slot: &mut Option<Registered>,
) -> Option<Waker> {
    let mut registered = slot.take()?;
    let mut source = StreamSource::<()> {
        connection,
        interest,
        take: &mut || None,
    };
    let registration = &mut registered.registration;
    registration.deregister(connection.event_loop(), &mut source)
}

/// What a caller waits for. If the id learns that the connection has closed, it wakes all
/// waiters of the queue pair.
struct StreamSource<'a, T> {
    connection: &'a StreamConnection,
    interest: StreamInterest,
    take: &'a mut dyn FnMut() -> Option<T>,
}

impl<T> WaitSource for StreamSource<'_, T> {
    type Item = T;

    fn take(&mut self) -> Option<T> {
        let queue_pair = self.connection.queue_pair();
        loop {
            let item = (self.take)();
            if item.is_some() || !queue_pair.arm_and_look(self.interest) {
                return item;
            }
        }
    }

    fn register(&mut self, key: u64, waker: &Waker) {
        let queue_pair = self.connection.queue_pair();
        queue_pair.register(self.interest, key, waker);
    }

    fn withdraw(&mut self, key: u64) {
        self.connection.queue_pair().withdraw(self.interest, key);
    }

    fn deregister(&mut self, key: u64) {
        self.connection.queue_pair().deregister(self.interest, key);
    }
}
