//! Connect requests as a stream.

use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll};

use rdmacm_core::Deadline;

use super::peers::Peers;
use super::{Incoming, Listener};
use crate::error::Result;

/// The stream of [`Listener::incoming`]; a `Stream` with the feature `stream`.
pub struct IncomingRequests<'listener> {
    listener: &'listener Listener,
    peers: Peers<'listener, Incoming>,
}

impl<'listener> IncomingRequests<'listener> {
    pub(super) fn new(listener: &'listener Listener) -> Self {
        Self {
            listener,
            peers: Peers::new(),
        }
    }

    /// Waits for the next request; `None` once no more come.
    pub async fn next(&mut self) -> Option<Result<Incoming>> {
        poll_fn(|context| self.poll(context)).await
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Incoming>>> {
        let listener = self.listener;
        self.peers
            .poll(context, || listener.next_incoming(Deadline::Never))
    }
}

impl fmt::Debug for IncomingRequests<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IncomingRequests")
            .field(self.listener)
            .finish()
    }
}
