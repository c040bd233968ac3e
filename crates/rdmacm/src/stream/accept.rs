//! Waiting for the next stream of a listener.

use std::future::poll_fn;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use rdmacm_core as core;

use super::handle::StreamHandle;
use super::options::StreamOptions;
use super::pending_handshakes::PendingHandshakes;
use crate::error::Result;
use crate::event_loop::{PollSlot, TimedRegistration, TimedSource, WaitSource, WaiterKind};
use crate::listen::ListeningIds;
use crate::stage::Stage;

/// The requests and handshakes of a listener, and the streams that they become.
struct AcceptSource<'a> {
    handshakes: &'a PendingHandshakes,
    ids: &'a ListeningIds,
    options: &'a StreamOptions,
}

impl AcceptSource<'_> {
    /// `poll` polls for the next stream.
    fn poll_with(
        &mut self,
        mut poll: impl FnMut(&mut Self) -> Poll<core::Result<Result<StreamHandle>>>,
    ) -> Poll<Result<StreamHandle>> {
        loop {
            let timers = self.timers();
            match poll(self) {
                Poll::Ready(Ok(stream)) => return Poll::Ready(stream),
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(Err(self.ids.attempt().fail(Stage::WaitForRequest, error)));
                }
                // Perhaps a handshake has begun, which has a deadline.
                Poll::Pending if self.timers() != timers => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl WaitSource for AcceptSource<'_> {
    type Item = Result<StreamHandle>;

    fn take(&mut self) -> Option<Self::Item> {
        let next = self.handshakes.take_next(self.ids, self.options, || ());
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
    /// When to give up on a peer, and when to check the sockets. A listener with too many
    /// handshakes does not look for requests, nor at its sockets.
    fn timers(&mut self) -> [Option<Instant>; 2] {
        let check = self.ids.next_check();
        let check = check.filter(|_| !self.handshakes.is_full());
        [self.handshakes.first_deadline(), check]
    }
}

/// A future that waits for the next stream.
struct AcceptWait<'a> {
    source: AcceptSource<'a>,
    registration: TimedRegistration,
}

impl AcceptWait<'_> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<StreamHandle>> {
        let registration = &mut self.registration;
        let kind = WaiterKind::Future;
        self.source.poll_with(|source| {
            registration.poll(source.ids.event_loop(), kind, source, None, context)
        })
    }
}

impl Drop for AcceptWait<'_> {
    fn drop(&mut self) {
        let AcceptSource {
            handshakes, ids, ..
        } = self.source;
        let event_loop = ids.event_loop();
        self.registration
            .end(event_loop, |key| handshakes.deregister(ids, key));
    }
}

impl PendingHandshakes {
    /// Waits for the next stream. A handshake that a peer does not complete, or gets wrong, is
    /// no error here: the peer learns of it.
    pub(crate) async fn accept(
        &self,
        ids: &ListeningIds,
        options: &StreamOptions,
    ) -> Result<StreamHandle> {
        // It may have gone, and would be woken in the future's place.
        self.end_polling(ids, &self.poll_slot);
        if let Some(stream) = self.take_next(ids, options, || ())? {
            return Ok(stream);
        }
        let mut wait = AcceptWait {
            source: AcceptSource {
                handshakes: self,
                ids,
                options,
            },
            registration: TimedRegistration::default(),
        };
        poll_fn(|context| wait.poll(context)).await
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
        };
        source.poll_with(|source| slot.poll(ids.event_loop(), source, None, context))
    }

    /// Ends the wait of the last caller of a slot.
    pub(crate) fn end_polling(&self, ids: &ListeningIds, slot: &PollSlot) {
        slot.end(ids.event_loop(), |key| self.deregister(ids, key));
    }
}
