//! `Stream` for the peers of listeners.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use super::cooperation::poll_in_turn;
use super::{Incoming, IncomingRequests};
use crate::error::Result;

impl Stream for IncomingRequests<'_> {
    type Item = Result<Incoming>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.sequence.has_ended() {
            return Poll::Ready(None);
        }
        let ids = self.listener.listening_ids();
        let polled = poll_in_turn(context, |context| {
            ids.poll_request(&self.poll_slot, context)
        });
        let request = ready!(polled);
        Poll::Ready(self.sequence.item(request.map(Incoming::new)))
    }
}

#[cfg(feature = "verbs")]
impl Stream for super::IncomingStreams<'_> {
    type Item = std::io::Result<super::RdmaStream>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.sequence.has_ended() {
            return Poll::Ready(None);
        }
        let polled = poll_in_turn(context, |context| {
            self.listener.poll_stream(&self.poll_slot, context)
        });
        let accepted = ready!(polled);
        let next = self.sequence.item(accepted);
        Poll::Ready(next.map(|next| next.map_err(std::io::Error::from)))
    }
}
