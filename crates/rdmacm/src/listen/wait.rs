//! Waiting for the next connect request.

use std::mem;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use rdmacm_core::Deadline;

use super::{ListeningIds, Request};
use crate::error::Result;
use crate::event_loop::{PollSlot, TimedSource, TimedWait, WaitSource};
use crate::stage::Stage;

/// The connect requests of a listener, whose sockets it checks.
struct RequestSource<'a> {
    ids: &'a ListeningIds,
    is_check_due: bool,
}

impl<'a> RequestSource<'a> {
    fn new(ids: &'a ListeningIds) -> Self {
        Self {
            ids,
            is_check_due: false,
        }
    }
}

impl WaitSource for RequestSource<'_> {
    type Item = Result<Request>;

    fn take(&mut self) -> Option<Self::Item> {
        let taken = match self.ids.take_request() {
            Ok(None) if mem::take(&mut self.is_check_due) => {
                self.ids.check_sockets().map(|()| None)
            }
            taken => taken,
        };
        taken.transpose()
    }

    fn register(&mut self, key: u64, waker: &Waker) {
        self.ids.register(key, waker);
    }

    fn withdraw(&mut self, key: u64) {
        self.ids.withdraw(key);
    }

    fn deregister(&mut self, key: u64) {
        self.ids.deregister(key);
    }
}

impl TimedSource for RequestSource<'_> {
    /// When to check the sockets.
    fn timers(&mut self) -> [Option<Instant>; 2] {
        [self.ids.next_check(), None]
    }

    /// The check may have been made.
    fn have_timers_changed(&mut self, timers: [Option<Instant>; 2]) -> bool {
        self.timers() != timers
    }

    /// The event loop has run before.
    fn timer_due(&mut self, [is_check_due, _]: [bool; 2]) {
        self.is_check_due = is_check_due;
    }
}

impl ListeningIds {
    /// Waits for the next connect request.
    pub(crate) async fn next_request(&self, deadline: Deadline) -> Result<Request> {
        let attempt = self.attempt();
        // It may have gone, and would be woken in the future's place.
        self.end_polling(&self.poll_slot);
        if let Some(request) = self.take_request()? {
            return Ok(request);
        }
        let until = deadline.until(attempt.started);
        let source = RequestSource::new(self);
        let waited = TimedWait::after_check(&self.event_loop, source, until).await;
        waited.map_err(|error| attempt.fail(Stage::WaitForRequest, error))?
    }

    /// Polls for the next connect request, as the caller of a slot.
    pub(crate) fn poll_request(
        &self,
        slot: &PollSlot,
        context: &mut Context<'_>,
    ) -> Poll<Result<Request>> {
        let mut source = RequestSource::new(self);
        let polled = slot.poll(&self.event_loop, &mut source, context);
        polled.map(|waited| self.wait_result(waited))
    }
}
