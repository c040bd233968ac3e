//! `Stream` for connect requests.

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
