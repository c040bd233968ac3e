//! Waiting for a connection that carries messages.

use std::task::{Context, Poll, Waker};
use std::time::Instant;

use rdmacm_core as core;

use super::connection::MessageConnection;
use super::state::State;
use super::status::Status;
use super::waiters::Interest;
use crate::error::Cause;
use crate::event_loop::{PollSlot, TimedSource, TimedWait, WaitSource};

/// Waits until `take` returns something, which it has not done just now. It also sends keep-alives.
pub(super) fn wait_after_check<T>(
    connection: &MessageConnection,
    interest: Interest,
    until: Option<Instant>,
    take: impl FnMut(&mut State, Status) -> Option<T>,
) -> impl Future<Output = core::Result<T>> {
    connection.end_polling(interest);
    let source = MessageSource::new(connection, interest, take);
    TimedWait::after_check(connection.event_loop(), source, until)
}

/// Polls until `take` returns something, for a caller whose waker outlives the call.
pub(super) fn poll<T>(
    slot: &PollSlot,
    connection: &MessageConnection,
    interest: Interest,
    context: &mut Context<'_>,
    take: impl FnMut(&mut State, Status) -> Option<T>,
) -> Poll<Result<T, Cause>> {
    let mut source = MessageSource::new(connection, interest, take);
    let polled = slot.poll(connection.event_loop(), &mut source, context);
    polled.map_err(Cause::from)
}

/// What a caller waits for. The queue pair reports that the connection has closed; if the
/// id learns of it, it wakes all waiters of the queue pair.
struct MessageSource<'a, F> {
    connection: &'a MessageConnection,
    interest: Interest,
    /// As it was at the last look.
    disconnect_wait: Option<Instant>,
    take: F,
}

impl<'a, F> MessageSource<'a, F> {
    fn new(connection: &'a MessageConnection, interest: Interest, take: F) -> Self {
        Self {
            connection,
            interest,
            disconnect_wait: None,
            take,
        }
    }
}

impl<T, F: FnMut(&mut State, Status) -> Option<T>> TimedSource for MessageSource<'_, F> {
    fn try_take(&mut self) -> Option<T> {
        self.connection.poll_with(&mut self.take)
    }

    fn timers(&mut self) -> [Option<Instant>; 2] {
        let (keep_alive, disconnect_wait) = self.connection.timers();
        self.disconnect_wait = disconnect_wait;
        [keep_alive, disconnect_wait]
    }

    /// The next keep-alive moves with each transfer: it is read again when its timer is due.
    fn have_timers_changed(&mut self, [_, disconnect_wait]: [Option<Instant>; 2]) -> bool {
        self.disconnect_wait != disconnect_wait
    }

    fn timer_due(&mut self, [is_keep_alive_due, _]: [bool; 2]) {
        if is_keep_alive_due {
            let now = self.connection.event_loop().now();
            self.connection.queue_pair().send_keep_alive(now);
        }
    }
}

impl<T, F: FnMut(&mut State, Status) -> Option<T>> WaitSource for MessageSource<'_, F> {
    type Item = T;

    fn take(&mut self) -> Option<T> {
        let connection = self.connection;
        if self.interest == Interest::ReceiveReady {
            // What has arrived is received in any case; mostly nothing else has happened.
            let take = |state: &mut State| (self.take)(state, Status::Open);
            match connection.queue_pair().poll_arrivals(take) {
                Some(item) => return Some(item),
                None if !connection.may_be_closed() => return None,
                None => {}
            }
        }
        connection.poll_with(|state, status| {
            let item = (self.take)(state, status);
            if item.is_none() {
                self.disconnect_wait = connection.disconnect_wait(state);
            }
            item
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
