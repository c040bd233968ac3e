//! Connect requests as a stream.

use std::fmt;

use rdmacm_core::Deadline;

use super::cooperation::consume_budget;
use super::{Incoming, Listener};
use crate::error::Result;
use crate::event_loop::PollSlot;
use crate::listen::PeerSequence;

/// The stream of [`Listener::incoming`]; a `Stream` with the feature `stream`.
pub struct IncomingRequests<'listener> {
    pub(super) listener: &'listener Listener,
    pub(super) sequence: PeerSequence,
    /// The wait between polls.
    pub(super) poll_slot: PollSlot,
}

impl<'listener> IncomingRequests<'listener> {
    pub(super) fn new(listener: &'listener Listener) -> Self {
        Self {
            listener,
            sequence: PeerSequence::default(),
            poll_slot: PollSlot::default(),
        }
    }

    /// Waits for the next request; `None` once no more come.
    ///
    /// # Errors
    /// Those of [`Listener::accept`] but the deadline. After one that does not end the listener,
    /// the next request comes.
    pub async fn next(&mut self) -> Option<Result<Incoming>> {
        if self.sequence.has_ended() {
            return None;
        }
        // There may be many peers, for whom nobody has to wait.
        consume_budget().await;
        self.end_polling();
        let accepted = self.listener.next_incoming(Deadline::Never).await;
        self.sequence.item(accepted)
    }

    fn end_polling(&self) {
        self.listener.listening_ids().end_polling(&self.poll_slot);
    }
}

impl Drop for IncomingRequests<'_> {
    fn drop(&mut self) {
        self.end_polling();
    }
}

impl fmt::Debug for IncomingRequests<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IncomingRequests")
            .field(self.listener)
            .finish()
    }
}
