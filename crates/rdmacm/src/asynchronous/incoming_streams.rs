//! The byte streams of a listener as a stream.

use std::fmt;
use std::io;

use super::next_peer::NextPeer;
use super::{RdmaListener, RdmaStream};

/// The stream of [`RdmaListener::incoming`]; a `Stream` with the feature `stream`.
pub struct IncomingStreams<'listener> {
    pub(super) listener: &'listener RdmaListener,
    pub(super) next: NextPeer<'listener, RdmaStream>,
}

impl<'listener> IncomingStreams<'listener> {
    pub(super) fn new(listener: &'listener RdmaListener) -> Self {
        Self {
            listener,
            next: NextPeer::new(),
        }
    }

    /// Waits for the next byte stream; `None` once no more come. Dropping the future loses none.
    ///
    /// # Errors
    /// Those of [`RdmaListener::accept`]. After one that does not end the listener, the next stream
    /// comes.
    pub async fn next(&mut self) -> Option<io::Result<RdmaStream>> {
        let listener = self.listener;
        let next = self.next.wait(|| listener.next_stream()).await;
        next.map(|next| next.map_err(io::Error::from))
    }
}

impl fmt::Debug for IncomingStreams<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IncomingStreams")
            .field(self.listener)
            .finish()
    }
}
