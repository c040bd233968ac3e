//! The byte streams of a listener as a stream.

use std::fmt;
use std::io;

use super::cooperation::consume_budget;
use super::{RdmaListener, RdmaStream};
use crate::event_loop::PollSlot;
use crate::listen::PeerSequence;

/// The stream of [`RdmaListener::incoming`]; a `Stream` with the feature `stream`.
pub struct IncomingStreams<'listener> {
    pub(super) listener: &'listener RdmaListener,
    pub(super) sequence: PeerSequence,
    /// The wait between polls.
    pub(super) poll_slot: PollSlot,
}

impl<'listener> IncomingStreams<'listener> {
    pub(super) fn new(listener: &'listener RdmaListener) -> Self {
        Self {
            listener,
            sequence: PeerSequence::default(),
            poll_slot: PollSlot::default(),
        }
    }

    /// Waits for the next byte stream; `None` once no more come. Dropping the future loses none.
    ///
    /// # Errors
    /// Those of [`RdmaListener::accept`]. After one that does not end the listener, the next stream
    /// comes.
    pub async fn next(&mut self) -> Option<io::Result<RdmaStream>> {
        if self.sequence.has_ended() {
            return None;
        }
        // There may be many peers, for whom nobody has to wait.
        consume_budget().await;
        self.end_polling();
        let accepted = self.listener.next_stream().await;
        let next = self.sequence.item(accepted)?;
        Some(next.map_err(io::Error::from))
    }

    fn end_polling(&self) {
        let ids = self.listener.listener.listening_ids();
        self.listener.handshakes.end_polling(ids, &self.poll_slot);
    }
}

impl Drop for IncomingStreams<'_> {
    fn drop(&mut self) {
        self.end_polling();
    }
}

impl fmt::Debug for IncomingStreams<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IncomingStreams")
            .field(self.listener)
            .finish()
    }
}
