//! Waiting for a stream.

use std::task::{Context, Poll, Waker};
use std::time::Instant;

use super::connection::StreamConnection;
use super::status::StreamInterest;
use crate::error::Cause;
use crate::event_loop::{PollSlot, TimedRegistration, TimedSource, WaitSource, WaiterKind};

/// A wait of one caller, until a deadline. It also sends keep-alives.
#[derive(Debug)]
pub(super) struct StreamWait<'a> {
    connection: &'a StreamConnection,
    interest: StreamInterest,
    until: Option<Instant>,
    registration: TimedRegistration,
}

impl<'a> StreamWait<'a> {
    /// Of a caller that has checked just now.
    pub(super) fn after_check(
        connection: &'a StreamConnection,
        interest: StreamInterest,
        until: Option<Instant>,
    ) -> Self {
        Self {
            connection,
            interest,
            until,
            registration: TimedRegistration::default(),
        }
    }

    pub(super) fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        take: &mut dyn FnMut() -> Option<T>,
    ) -> Poll<Result<T, Cause>> {
        if !self.registration.is_registered() {
            self.connection.end_polling(self.interest);
        }
        let event_loop = self.connection.event_loop();
        let (kind, until) = (WaiterKind::Future, self.until);
        let mut source = StreamSource {
            connection: self.connection,
            interest: self.interest,
            take,
        };
        let registration = &mut self.registration;
        let polled = registration.poll(event_loop, kind, &mut source, until, context);
        polled.map_err(Cause::from)
    }
}

impl Drop for StreamWait<'_> {
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
    connection: &StreamConnection,
    interest: StreamInterest,
    context: &mut Context<'_>,
    take: &mut dyn FnMut() -> Option<T>,
) -> Poll<Result<T, Cause>> {
    let mut source = StreamSource {
        connection,
        interest,
        take,
    };
    let polled = slot.poll(connection.event_loop(), &mut source, None, context);
    polled.map_err(Cause::from)
}

/// What a caller waits for. If the id learns that the connection has closed, it wakes all
/// waiters of the queue pair.
struct StreamSource<'a, T> {
    connection: &'a StreamConnection,
    interest: StreamInterest,
    take: &'a mut dyn FnMut() -> Option<T>,
}

impl<T> TimedSource for StreamSource<'_, T> {
    /// Without requesting a notification.
    fn try_take(&mut self) -> Option<T> {
        (self.take)()
    }

    fn timers(&mut self) -> [Option<Instant>; 2] {
        [self.connection.keep_alive_due(), None]
    }

    fn timer_due(&mut self, _: Option<Instant>) {
        let now = self.connection.event_loop().now();
        self.connection.queue_pair().send_keep_alive(now);
    }
}

impl<T> WaitSource for StreamSource<'_, T> {
    type Item = T;

    fn take(&mut self) -> Option<T> {
        let queue_pair = self.connection.queue_pair();
        loop {
            let item = (self.take)();
            if item.is_some() || !queue_pair.arm_and_poll(self.interest) {
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
