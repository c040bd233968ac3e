//! `Stream` for the peers of listeners.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::{Incoming, IncomingRequests};
use crate::error::Result;

impl Stream for IncomingRequests<'_> {
    type Item = Result<Incoming>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll(context)
    }
}

#[cfg(feature = "verbs")]
impl Stream for super::IncomingStreams<'_> {
    type Item = std::io::Result<super::RdmaStream>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll(context)
    }
}
