//! Connect requests as an iterator.

use rdmacm_core::Deadline;

use super::{Incoming, Listener};
use crate::error::Result;
use crate::listen::PeerSequence;

/// The iterator of [`Listener::incoming`].
#[derive(Debug)]
pub struct IncomingRequests<'listener> {
    listener: &'listener Listener,
    sequence: PeerSequence,
}

impl<'listener> IncomingRequests<'listener> {
    pub(super) fn new(listener: &'listener Listener) -> Self {
        Self {
            listener,
            sequence: PeerSequence::default(),
        }
    }
}

impl Iterator for IncomingRequests<'_> {
    type Item = Result<Incoming>;

    /// Waits for the next request.
    fn next(&mut self) -> Option<Self::Item> {
        if self.sequence.has_ended() {
            return None;
        }
        let accepted = self.listener.accept(Deadline::Never);
        self.sequence.item(accepted)
    }
}
