//! The streams of a listener as an iterator.

use std::io;

use super::{RdmaListener, RdmaStream};
use crate::event_loop::block_on;
use crate::listen::PeerSequence;

/// The iterator of [`RdmaListener::incoming`].
#[derive(Debug)]
pub struct IncomingStreams<'listener> {
    listener: &'listener RdmaListener,
    sequence: PeerSequence,
}

impl<'listener> IncomingStreams<'listener> {
    pub(super) fn new(listener: &'listener RdmaListener) -> Self {
        Self {
            listener,
            sequence: PeerSequence::default(),
        }
    }
}

impl Iterator for IncomingStreams<'_> {
    type Item = io::Result<RdmaStream>;

    /// Waits for the next stream.
    fn next(&mut self) -> Option<Self::Item> {
        if self.sequence.has_ended() {
            return None;
        }
        let accepted = match self.listener.next_at_once() {
            Some(Ok(None)) => return Some(Err(io::ErrorKind::WouldBlock.into())),
            Some(Ok(Some(stream))) => Ok(stream),
            Some(Err(error)) => Err(error),
            None => {
                let next = self.listener.next_stream();
                block_on(self.listener.event_loop(), next)
            }
        };
        let item = self.sequence.item(accepted)?;
        Some(item.map_err(io::Error::from))
    }
}
