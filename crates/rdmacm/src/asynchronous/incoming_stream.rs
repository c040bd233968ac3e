//! `Stream` for the peers of listeners.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use rdmacm_core::Deadline;

use super::{Incoming, IncomingRequests};
use crate::error::Result;

impl Stream for IncomingRequests<'_> {
    type Item = Result<Incoming>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let listener = self.listener;
        let accept = || listener.next_incoming(Deadline::Never);
        self.next.poll(context, accept)
    }
}

#[cfg(feature = "verbs")]
impl Stream for super::IncomingStreams<'_> {
    type Item = std::io::Result<super::RdmaStream>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let listener = self.listener;
        let accept = || listener.next_stream();
        self.next
            .poll(context, accept)
            .map_err(std::io::Error::from)
    }
}
