//! Waiting for the next stream of a listener.

use std::mem;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use super::handle::StreamHandle;
use super::options::StreamOptions;
use super::pending_handshakes::{GiveUp, PendingHandshakes};
use crate::error::Result;
use crate::event_loop::{PollSlot, TimedSource, TimedWait, WaitSource};
use crate::listen::ListeningIds;

/// The requests and handshakes of a listener, and the streams that they become.
struct AcceptSource<'a> {
    handshakes: &'a PendingHandshakes,
    ids: &'a ListeningIds,
    options: &'a StreamOptions,
    give_up: GiveUp,
    is_check_due: bool,
}

impl WaitSource for AcceptSource<'_> {
    type Item = Result<StreamHandle>;

    fn take(&mut self) -> Option<Self::Item> {
        let give_up = mem::take(&mut self.give_up);
        let next = self
            .handshakes
            .take_next(self.ids, self.options, give_up, || ());
        let next = match next {
            Ok(None) if mem::take(&mut self.is_check_due) && self.handshakes.is_idle() => {
                self.ids.check_sockets().map(|()| None)
            }
            next => next,
        };
        next.transpose()
    }

    fn register(&mut self, key: u64, waker: &Waker) {
        self.handshakes.register(self.ids, key, waker);
    }

    fn withdraw(&mut self, key: u64) {
        self.ids.withdraw(key);
    }

    fn deregister(&mut self, key: u64) {
        self.handshakes.deregister(self.ids, key);
    }
}

impl TimedSource for AcceptSource<'_> {
    /// When to give up on a peer, and when to check the sockets: not while peers are being
    /// accepted, which a listener that ends would give up.
    fn timers(&mut self) -> [Option<Instant>; 2] {
        let check = self.ids.next_check();
        let check = check.filter(|_| self.handshakes.is_idle());
        [self.handshakes.first_deadline(), check]
    }

    /// The event loop has run before.
    fn timer_due(&mut self, [is_deadline_due, is_check_due]: [bool; 2]) {
        if is_deadline_due {
            self.give_up = GiveUp::Awaited;
        }
        self.is_check_due = is_check_due;
    }

    /// Perhaps a handshake has begun, which has a deadline.
    fn have_timers_changed(&mut self, timers: [Option<Instant>; 2]) -> bool {
        self.timers() != timers
    }
}

impl PendingHandshakes {
    /// Waits for the next stream. A handshake that a peer does not complete, or gets wrong, is
    /// no error here: the peer learns of it.
    #[expect(
        clippy::manual_async_fn,
        reason = "the future of an `async fn` holds each argument twice"
    )]
    pub(crate) fn accept(
        &self,
        ids: &ListeningIds,
        options: &StreamOptions,
    ) -> impl Future<Output = Result<StreamHandle>> {
        async move {
            // It may have gone, and would be woken in the future's place.
            self.end_polling(ids, &self.poll_slot);
            if let Some(stream) = self.take_next(ids, options, GiveUp::Nobody, || ())? {
                return Ok(stream);
            }
            let source = AcceptSource {
                handshakes: self,
                ids,
                options,
                give_up: GiveUp::Nobody,
                is_check_due: false,
            };
            let waited = TimedWait::after_check(ids.event_loop(), source, None).await;
            ids.wait_result(waited)
        }
    }

    /// Polls as [`accept`](Self::accept) does, as the caller of a slot.
    pub(crate) fn poll_accept(
        &self,
        ids: &ListeningIds,
        options: &StreamOptions,
        slot: &PollSlot,
        context: &mut Context<'_>,
    ) -> Poll<Result<StreamHandle>> {
        let mut source = AcceptSource {
            handshakes: self,
            ids,
            options,
            give_up: GiveUp::Nobody,
            is_check_due: false,
        };
        let polled = slot.poll(ids.event_loop(), &mut source, context);
        polled.map(|waited| ids.wait_result(waited))
    }

    /// Ends the wait of the last caller of a slot.
    pub(crate) fn end_polling(&self, ids: &ListeningIds, slot: &PollSlot) {
        slot.end(ids.event_loop(), |key| self.deregister(ids, key));
    }
}
