//! Waiting for a connection that carries messages.

use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use rdmacm_core as core;

use super::connection::MessageConnection;
use super::state::State;
use super::status::Status;
use super::waiters::Interest;
use crate::error::Cause;
use crate::event_loop::{PollSlot, TimedRegistration, TimedSource, WaitSource, WaiterKind};

/// A wait of one caller, until a deadline. It also sends keep-alives.
#[derive(Debug)]
pub(super) struct MessageWait<'a> {
    connection: &'a MessageConnection,
    interest: Interest,
    until: Option<Instant>,
    /// The caller has checked just now.
    has_checked: bool,
    registration: TimedRegistration,
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
            has_checked: false,
            registration: TimedRegistration::default(),
        }
    }

    /// Of a caller that has checked just now.
    pub(super) fn after_check(mut self) -> Self {
        self.has_checked = true;
        self
    }

    pub(super) fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        take: &mut impl FnMut(&mut State, Status) -> Option<T>,
    ) -> Poll<Result<T, Cause>> {
        if !std::mem::replace(&mut self.has_checked, true) {
            // Mostly there is nothing to wait for.
            if let Some(item) = self.connection.poll_with(&mut *take) {
                return Poll::Ready(Ok(item));
            }
        }
        if !self.registration.is_registered() {
            self.connection.end_polling(self.interest);
        }
        let event_loop = self.connection.event_loop();
        let (kind, until) = (WaiterKind::Future, self.until);
        let mut source = MessageSource::new(self.connection, self.interest, take);
        let registration = &mut self.registration;
        until_item(|| registration.poll(event_loop, kind, &mut source, until, context))
    }
}

impl Drop for MessageWait<'_> {
    fn drop(&mut self) {
        let queue_pair = self.connection.queue_pair();
        self.registration.end(self.connection.event_loop(), |key| {
            queue_pair.deregister(self.interest, key);
        });
    }
}

/// Polls until `take` returns something, for a caller whose waker outlives the call.
pub(super) fn poll<T>(
    slot: &PollSlot,
    connection: &MessageConnection,
    interest: Interest,
    context: &mut Context<'_>,
    mut take: impl FnMut(&mut State, Status) -> Option<T>,
) -> Poll<Result<T, Cause>> {
    let mut source = MessageSource::new(connection, interest, &mut take);
    until_item(|| slot.poll(connection.event_loop(), &mut source, None, context))
}

/// Polls again if the timers have changed.
fn until_item<T>(
    mut poll: impl FnMut() -> Poll<core::Result<Option<T>>>,
) -> Poll<Result<T, Cause>> {
    loop {
        match ready!(poll()) {
            Ok(Some(item)) => return Poll::Ready(Ok(item)),
            Ok(None) => {}
            Err(error) => return Poll::Ready(Err(error.into())),
        }
    }
}

/// What a caller waits for. The queue pair reports that the connection has closed; if the
/// id learns of it, it wakes all waiters of the queue pair.
struct MessageSource<'a, F> {
    connection: &'a MessageConnection,
    interest: Interest,
    keep_alive: Option<Instant>,
    disconnect_wait: Option<Instant>,
    take: &'a mut F,
}

impl<'a, F> MessageSource<'a, F> {
    fn new(connection: &'a MessageConnection, interest: Interest, take: &'a mut F) -> Self {
        Self {
            connection,
            interest,
            keep_alive: None,
            disconnect_wait: None,
            take,
        }
    }
}

impl<T, F: FnMut(&mut State, Status) -> Option<T>> TimedSource for MessageSource<'_, F> {
    fn try_take(&mut self) -> Option<Self::Item> {
        self.connection.poll_with(&mut *self.take).map(Some)
    }

    fn timers(&mut self) -> [Option<Instant>; 2] {
        (self.keep_alive, self.disconnect_wait) = self.connection.timers();
        [self.keep_alive, self.disconnect_wait]
    }

    fn timer_due(&mut self, moment: Option<Instant>) {
        if self.keep_alive == moment {
            let now = self.connection.event_loop().now();
            self.connection.queue_pair().send_keep_alive(now);
        }
    }
}

impl<T, F: FnMut(&mut State, Status) -> Option<T>> WaitSource for MessageSource<'_, F> {
    /// `None` if the timers have changed.
    type Item = Option<T>;

    fn take(&mut self) -> Option<Self::Item> {
        let connection = self.connection;
        if self.interest == Interest::ReceiveReady {
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
