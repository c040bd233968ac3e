//! The peers of a listener in tasks, one after the other.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::error::Result;
use crate::listen::PeerSequence;

/// The wait for the next peer, kept between polls.
type Accepting<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// What a stream over a listener remembers.
pub(super) struct Peers<'a, T> {
    accepting: Option<Accepting<'a, T>>,
    sequence: PeerSequence,
}

impl<'a, T> Peers<'a, T> {
    pub(super) fn new() -> Self {
        Self {
            accepting: None,
            sequence: PeerSequence::default(),
        }
    }

    /// Polls for the next peer; `None` once no more come. `accept` begins to wait for one.
    pub(super) fn poll<F>(
        &mut self,
        context: &mut Context<'_>,
        accept: impl FnOnce() -> F,
    ) -> Poll<Option<Result<T>>>
    where
        F: Future<Output = Result<T>> + Send + 'a,
    {
        if self.sequence.has_ended() {
            return Poll::Ready(None);
        }
        let accepting = self.accepting.get_or_insert_with(|| Box::pin(accept()));
        let accepted = ready!(accepting.as_mut().poll(context));
        self.accepting = None;
        Poll::Ready(self.sequence.item(accepted))
    }
}
