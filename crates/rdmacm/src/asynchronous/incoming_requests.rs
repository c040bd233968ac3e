//! Connect requests as a stream.

use std::fmt;

use rdmacm_core::Deadline;

use super::next_peer::NextPeer;
use super::{Incoming, Listener};
use crate::error::Result;

/// The stream of [`Listener::incoming`]; a `Stream` with the feature `stream`.
pub struct IncomingRequests<'listener> {
    pub(super) listener: &'listener Listener,
    pub(super) next: NextPeer<'listener, Incoming>,
}

impl<'listener> IncomingRequests<'listener> {
    pub(super) fn new(listener: &'listener Listener) -> Self {
        Self {
            listener,
            next: NextPeer::new(),
        }
    }

    /// Waits for the next request; `None` once no more come.
    ///
    /// # Errors
    /// Those of [`Listener::accept`] but the deadline. After one that does not end the listener,
    /// the next request comes.
    pub async fn next(&mut self) -> Option<Result<Incoming>> {
        let listener = self.listener;
        let accept = || listener.next_incoming(Deadline::Never);
        self.next.wait(accept).await
    }
}

impl fmt::Debug for IncomingRequests<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IncomingRequests")
            .field(self.listener)
            .finish()
    }
}
