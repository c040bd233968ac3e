//! The byte streams of a listener as a stream.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use rdmacm_core::Deadline;

use super::peers::Peers;
use super::{RdmaListener, RdmaStream};

/// The stream of [`RdmaListener::incoming`]; a `Stream` with the feature `stream`.
pub struct IncomingStreams<'listener> {
    listener: &'listener RdmaListener,
    peers: Peers<'listener, RdmaStream>,
}

impl<'listener> IncomingStreams<'listener> {
    pub(super) fn new(listener: &'listener RdmaListener) -> Self {
        Self {
            listener,
            peers: Peers::new(),
        }
    }

    /// Waits for the next byte stream; `None` once no more come. Dropping the future loses none.
    pub async fn next(&mut self) -> Option<io::Result<RdmaStream>> {
        poll_fn(|context| self.poll(context)).await
    }

    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<RdmaStream>>> {
        let listener = self.listener;
        let next = self
            .peers
            .poll(context, || listener.next_stream(Deadline::Never));
        next.map_err(io::Error::from)
    }
}

impl fmt::Debug for IncomingStreams<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IncomingStreams")
            .field(self.listener)
            .finish()
    }
}
