//! Waiting for a connection that carries messages.

use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use rdmacm_core::Error;

use super::connection::{MessageConnection, Status};
use super::state::State;
use super::waiters::Interest;
use crate::error::Cause;
use crate::event_loop::{Registration, WaitSource, WaiterKind};

/// A wait of one caller, until a deadline. It also sends keep-alives.
#[derive(Debug)]
pub(super) struct MessageWait<'a> {
    connection: &'a MessageConnection,
    interest: Interest,
    until: Option<Instant>,
    /// The caller has looked just now.
    has_looked: bool,
    registration: Option<Registered>,
}

/// A registration with an event loop, and the timers that it was made for.
#[derive(Debug)]
struct Registered {
    registration: Registration,
    keep_alive: Option<Instant>,
    disconnect_wait: Option<Instant>,
}

impl<'a> MessageWait<'a> {
    pub(super) fn new(
        connection: &'a MessageConnection,
        interest: Interest,
        until: Option<Instant>,
    ) -> Self {
        Self {
            connection,
            interest,
            until,
            has_looked: false,
            registration: None,
        }
    }

    /// Of a caller that has looked just now.
    pub(super) fn after_look(mut self) -> Self {
        self.has_looked = true;
        self
    }

    pub(super) fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        take: &mut impl FnMut(&mut State, Status) -> Option<T>,
    ) -> Poll<Result<T, Cause>> {
        if !std::mem::replace(&mut self.has_looked, true) {
            // Mostly there is nothing to wait for.
            if let Some(item) = self.connection.poll_with(&mut *take) {
                return Poll::Ready(Ok(item));
            }
        }
        if self.registration.is_none() {
            self.connection.end_polling(self.interest);
        }
        let polled = poll(
            self.connection,
            WaiterKind::Future,
            self.interest,
            self.until,
            &mut self.registration,
            context,
            take,
        );
        if polled.is_ready() {
            self.end();
        }
        polled
    }

    fn end(&mut self) {
        end(self.connection, self.interest, &mut self.registration);
    }
}

impl Drop for MessageWait<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

/// The waker of the last caller of a `poll_` method, which outlives the call.
#[derive(Debug, Default)]
pub(super) struct PollSlot(Mutex<Option<Registered>>);

impl PollSlot {
    pub(super) fn poll<T>(
        &self,
        connection: &MessageConnection,
        interest: Interest,
        context: &mut Context<'_>,
        mut take: impl FnMut(&mut State, Status) -> Option<T>,
    ) -> Poll<Result<T, Cause>> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            // Mostly there is nothing to wait for.
            if let Some(item) = connection.poll_with(&mut take) {
                return Poll::Ready(Ok(item));
            }
        }
        let (kind, take) = (WaiterKind::Caller, &mut take);
        let polled = poll(connection, kind, interest, None, &mut slot, context, take);
        if polled.is_ready() {
            end(connection, interest, &mut slot);
        }
        polled
    }

    /// Ends the wait of the last caller, and wakes it.
    pub(super) fn end(&self, connection: &MessageConnection, interest: Interest) {
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
    connection: &MessageConnection,
    kind: WaiterKind,
    interest: Interest,
    until: Option<Instant>,
    slot: &mut Option<Registered>,
    context: &mut Context<'_>,
    take: &mut impl FnMut(&mut State, Status) -> Option<T>,
) -> Poll<Result<T, Cause>> {
    let event_loop = connection.event_loop();
    loop {
        let (keep_alive, disconnect_wait) = connection.timers();
        let is_same = slot.as_ref().is_some_and(|registered| {
            registered.keep_alive == keep_alive && registered.disconnect_wait == disconnect_wait
        });
        if !is_same {
            end(connection, interest, slot);
        }
        let by = [until, keep_alive, disconnect_wait];
        let by = by.into_iter().flatten().min();
        let registered = slot.get_or_insert_with(|| Registered {
            registration: Registration::after_look(event_loop, kind, by),
            keep_alive,
            disconnect_wait,
        });
        let mut source = MessageSource {
            connection,
            interest,
            disconnect_wait,
            take: &mut *take,
        };
        let polled = registered
            .registration
            .poll(event_loop, &mut source, context);
        match polled {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(Some(item))) => return Poll::Ready(Ok(item)),
            Poll::Ready(Ok(None)) => {}
            Poll::Ready(Err(Error::DeadlinePassed)) if until != by => {
                if keep_alive == by {
                    connection.queue_pair().send_keep_alive(event_loop.now());
                }
            }
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
        }
        // The timers have changed.
        end(connection, interest, slot);
    }
}

/// Returns the waker of a task.
fn end(
    connection: &MessageConnection,
    interest: Interest,
    slot: &mut Option<Registered>,
) -> Option<Waker> {
    let mut registered = slot.take()?;
    let mut waiter = Waiter {
        connection,
        interest,
    };
    let registration = &mut registered.registration;
    registration.deregister(connection.event_loop(), &mut waiter)
}

/// What a caller waits for. The queue pair reports that the connection has closed; if the
/// id learns of it, it wakes all waiters of the queue pair.
struct MessageSource<'a, F> {
    connection: &'a MessageConnection,
    interest: Interest,
    disconnect_wait: Option<Instant>,
    take: &'a mut F,
}

impl<T, F: FnMut(&mut State, Status) -> Option<T>> WaitSource for MessageSource<'_, F> {
    /// `None` if the timers have changed.
    type Item = Option<T>;

    fn take(&mut self) -> Option<Self::Item> {
        let connection = self.connection;
        if self.interest == Interest::Arrival {
            // What has arrived is received in any case; mostly nothing else has happened.
            let take = |state: &mut State| (self.take)(state, Status::Open);
            match connection.queue_pair().poll_arrivals(take) {
                Some(item) => return Some(Some(item)),
                None if !connection.may_be_closed() => return None,
                None => {}
            }
        }
        connection.poll_with(|state, status| {
            let item = (self.take)(state, status);
            let has_changed = || connection.disconnect_wait(state) != self.disconnect_wait;
            (item.is_some() || has_changed()).then_some(item)
        })
    }

    fn register(&mut self, key: u64, waker: &Waker) {
        let Self {
            connection,
            interest,
            ..
        } = self;
        connection.queue_pair().register(*interest, key, waker);
    }

    fn withdraw(&mut self, key: u64) {
        self.connection.queue_pair().withdraw(self.interest, key);
    }

    fn deregister(&mut self, key: u64) {
        let mut waiter = Waiter {
            connection: self.connection,
            interest: self.interest,
        };
        waiter.deregister(key);
    }
}

/// A waiter that waits no more.
struct Waiter<'a> {
    connection: &'a MessageConnection,
    interest: Interest,
}

impl WaitSource for Waiter<'_> {
    type Item = std::convert::Infallible;

    fn take(&mut self) -> Option<Self::Item> {
        None
    }

    fn register(&mut self, _: u64, _: &Waker) {}

    fn deregister(&mut self, key: u64) {
        let connection = self.connection;
        connection.queue_pair().deregister(self.interest, key);
    }
}
