//! Listeners in futures that are written by hand.

use std::task::{Context, Poll, Waker};
use std::time::Instant;

use rdmacm_core::Error;

use super::handle::StreamHandle;
use super::options::StreamOptions;
use super::pending_handshakes::PendingHandshakes;
use crate::error::Result;
use crate::event_loop::{TimedSource, WaitSource};
use crate::listen::ListeningIds;
use crate::stage::Stage;

/// The requests and handshakes of a listener, and the streams that they become.
struct AcceptSource<'a> {
    handshakes: &'a PendingHandshakes,
    ids: &'a ListeningIds,
    options: &'a StreamOptions,
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

    fn deregister(&mut self, key: u64) {
        self.handshakes.deregister(self.ids, key);
    }
}

impl TimedSource for AcceptSource<'_> {}

impl PendingHandshakes {
    /// Polls as [`accept`](Self::accept) does without a deadline.
    pub(crate) fn poll_accept(
        &self,
        ids: &ListeningIds,
        options: &StreamOptions,
        context: &mut Context<'_>,
    ) -> Poll<Result<StreamHandle>> {
        let mut source = AcceptSource {
            handshakes: self,
            ids,
            options,
        };
        loop {
            let timer = self.next_timer(ids);
            let slot = &self.poll_slot;
            match slot.poll(ids.event_loop(), &mut source, timer, context) {
                Poll::Ready(Ok(stream)) => return Poll::Ready(stream),
                Poll::Ready(Err(Error::DeadlinePassed)) => self.give_up_on_silent_peers(ids),
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(Err(ids.attempt().fail(Stage::Accept, error)));
                }
                // Perhaps a handshake has begun, which has a deadline.
                Poll::Pending if self.next_timer(ids) != timer => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Ends the wait of the last caller that polls, before a future waits. It may have gone, and
    /// would be woken in the future's place.
    pub(crate) fn end_polling(&self, ids: &ListeningIds) {
        let slot = &self.poll_slot;
        slot.end(ids.event_loop(), |key| self.deregister(ids, key));
    }

    /// When to give up on a peer, or to check the sockets. A listener with too many handshakes
    /// does not look for requests, nor at its sockets.
    fn next_timer(&self, ids: &ListeningIds) -> Option<Instant> {
        let check = ids.next_check().filter(|_| !self.is_full());
        [self.first_deadline(), check].into_iter().flatten().min()
    }
}
