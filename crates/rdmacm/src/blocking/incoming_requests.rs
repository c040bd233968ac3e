//! Connect requests as an iterator.

use rdmacm_core::Deadline;

use super::{Incoming, Listener};
use crate::error::Result;

/// The iterator of [`Listener::incoming`].
#[derive(Debug)]
pub struct IncomingRequests<'listener> {
    listener: &'listener Listener,
    is_over: bool,
}

impl<'listener> IncomingRequests<'listener> {
    pub(super) fn new(listener: &'listener Listener) -> Self {
        Self {
            listener,
            is_over: false,
        }
    }
}

impl Iterator for IncomingRequests<'_> {
    type Item = Result<Incoming>;

    /// Waits for the next request.
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.listener.accept(Deadline::Never);
        match next {
            Err(error) if error.is_stopped() => None,
            Err(error) => {
                self.is_over = error.ends_listener();
                Some(Err(error))
            }
            Ok(incoming) => Some(Ok(incoming)),
        }
    }
}
