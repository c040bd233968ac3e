//! The next peer of a listener, for a task.

use std::future::Future;
use std::pin::Pin;
#[cfg(feature = "stream")]
use std::task::{Context, Poll, ready};

#[cfg(feature = "stream")]
use super::cooperation::poll_turn;
use super::cooperation::turn;
use crate::error::Result;
use crate::listen::PeerSequence;

/// The wait for the next peer, kept between polls.
type Accepting<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// The wait for the next peer, and whether one comes.
pub(super) struct NextPeer<'a, T> {
    /// Of a caller that polls.
    accepting: Option<Accepting<'a, T>>,
    sequence: PeerSequence,
}

impl<T> NextPeer<'_, T> {
    pub(super) fn new() -> Self {
        Self {
            accepting: None,
            sequence: PeerSequence::default(),
        }
    }

    /// Waits for the next peer; `None` once no more come. What a caller that polls has waited for
    /// is waited for here: it may not poll again.
    pub(super) async fn wait<F>(&mut self, accept: impl FnOnce() -> F) -> Option<Result<T>>
    where
        F: Future<Output = Result<T>>,
    {
        if self.sequence.has_ended() {
            return None;
        }
        // There may be many peers, for whom nobody has to wait.
        turn().await;
        let accepted = match self.accepting.take() {
            Some(accepting) => accepting.await,
            None => accept().await,
        };
        self.sequence.item(accepted)
    }
}

#[cfg(feature = "stream")]
impl<'a, T> NextPeer<'a, T> {
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
        ready!(poll_turn(context));
        let accepting = self.accepting.get_or_insert_with(|| Box::pin(accept()));
        let accepted = ready!(accepting.as_mut().poll(context));
        self.accepting = None;
        Poll::Ready(self.sequence.item(accepted))
    }
}
