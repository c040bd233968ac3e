//! Waiting for a stream.

use std::task::{Context, Poll, Waker};
use std::time::Instant;

use rdmacm_core as core;

use super::connection::StreamConnection;
use super::status::StreamInterest;
use crate::error::Cause;
use crate::event_loop::{PollSlot, TimedSource, TimedWait, WaitSource};

/// Waits until `take` returns something, which it has not done just now. It also sends keep-alives.
pub(super) fn wait_after_check<'a, T>(
    connection: &'a StreamConnection,
    interest: StreamInterest,
    until: Option<Instant>,
    take: &'a mut (dyn FnMut() -> Option<T> + Send),
) -> impl Future<Output = core::Result<T>> {
    connection.end_polling(interest);
    let source = StreamSource {
        connection,
        interest,
        take,
    };
    TimedWait::after_check(connection.event_loop(), source, until)
}

/// Polls until `take` returns something, for a caller whose waker outlives the call.
pub(super) fn poll<T>(
    slot: &PollSlot,
    connection: &StreamConnection,
    interest: StreamInterest,
    context: &mut Context<'_>,
    take: &mut (dyn FnMut() -> Option<T> + Send),
) -> Poll<Result<T, Cause>> {
    let mut source = StreamSource {
        connection,
        interest,
        take,
    };
    let polled = slot.poll(connection.event_loop(), &mut source, context);
    polled.map_err(Cause::from)
}

/// What a caller waits for. If the id learns that the connection has closed, it wakes all
/// waiters of the queue pair.
struct StreamSource<'a, T> {
    connection: &'a StreamConnection,
    interest: StreamInterest,
    take: &'a mut (dyn FnMut() -> Option<T> + Send),
}

impl<T> TimedSource for StreamSource<'_, T> {
    /// Without requesting a notification.
    fn try_take(&mut self) -> Option<T> {
        (self.take)()
    }

    fn timers(&mut self) -> [Option<Instant>; 2] {
        [self.connection.keep_alive_due(), None]
    }

    fn timer_due(&mut self, _: [bool; 2]) {
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
