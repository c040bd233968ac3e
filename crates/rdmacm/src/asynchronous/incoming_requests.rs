//! Connect requests as a stream.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use super::{Incoming, Listener};
use crate::error::Result;

/// The wait for the next request, kept between polls.
pub(super) type Waiting<'a> = Pin<Box<dyn Future<Output = Result<Incoming>> + Send + 'a>>;

/// The stream of [`Listener::incoming`]; a `Stream` with the feature `stream`.
pub struct IncomingRequests<'listener> {
    pub(super) listener: &'listener Listener,
    pub(super) waiting: Option<Waiting<'listener>>,
    pub(super) is_over: bool,
}

impl<'listener> IncomingRequests<'listener> {
    pub(super) fn new(listener: &'listener Listener) -> Self {
        Self {
            listener,
            waiting: None,
            is_over: false,
        }
    }

    /// Waits for the next request; `None` once no more come.
    pub async fn next(&mut self) -> Option<Result<Incoming>> {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    pub(super) fn poll(
        &mut self,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Incoming>>> {
        if self.is_over {
            return std::task::Poll::Ready(None);
        }
        let listener = self.listener;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(listener.next_incoming(rdmacm_core::Deadline::Never)));
        let outcome = std::task::ready!(waiting.as_mut().poll(context));
        self.waiting = None;
        std::task::Poll::Ready(match outcome {
            Err(error) if error.is_stopped() => None,
            Err(error) => {
                self.is_over = error.ends_listener();
                Some(Err(error))
            }
            Ok(incoming) => Some(Ok(incoming)),
        })
    }
}

impl fmt::Debug for IncomingRequests<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IncomingRequests")
            .field(self.listener)
            .finish()
    }
}
