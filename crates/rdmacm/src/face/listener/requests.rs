//! Peers as they come.

use std::fmt;

use rdmacm_core::Deadline;

use super::super::Incoming;
use super::{Listener, is_stopped};
use crate::error::Result;
use crate::mode::{Blocking, Mode};

/// Peers as they come, see [`Listener::incoming`]: an iterator, or in an
/// asynchronous mode a stream.
pub struct Requests<'listener, M: Mode> {
    listener: &'listener Listener<M>,
    #[cfg(feature = "stream")]
    waiting: Option<stream::Waiting<'listener, M>>,
}

impl<'listener, M: Mode> Requests<'listener, M> {
    pub(super) fn new(listener: &'listener Listener<M>) -> Self {
        Self {
            listener,
            #[cfg(feature = "stream")]
            waiting: None,
        }
    }
}

impl Iterator for Requests<'_, Blocking> {
    type Item = Result<Incoming<Blocking>>;

    /// Waits for the next peer; ends when the listener is stopped.
    fn next(&mut self) -> Option<Self::Item> {
        match self.listener.accept(Deadline::Never) {
            Err(error) if is_stopped(&error) => None,
            outcome => Some(outcome),
        }
    }
}

impl<M: Mode> fmt::Debug for Requests<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Requests").field(self.listener).finish()
    }
}

#[cfg(feature = "stream")]
mod stream {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};

    use futures_core::Stream;
    use rdmacm_core::Deadline;

    use super::{Incoming, Requests, Result, is_stopped};
    use crate::mode::Async;
    use crate::reactor::Runtime;

    /// The wait for the next peer, kept between polls.
    pub(super) type Waiting<'a, M> = Pin<Box<dyn Future<Output = Result<Incoming<M>>> + Send + 'a>>;

    impl<R: Runtime> Stream for Requests<'_, Async<R>> {
        type Item = Result<Incoming<Async<R>>>;

        /// The next peer; ends when the listener is stopped.
        fn poll_next(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Self::Item>> {
            let listener = self.listener;
            let waiting = self
                .waiting
                .get_or_insert_with(|| Box::pin(listener.accept_async(Deadline::Never)));
            let outcome = ready!(waiting.as_mut().poll(context));
            self.waiting = None;
            Poll::Ready(match outcome {
                Err(error) if is_stopped(&error) => None,
                outcome => Some(outcome),
            })
        }
    }
}
