//! Accepting in futures that are written by hand.

use std::task::{Context, Poll};

use super::cooperation::poll_in_turn;
use super::{Incoming, Listener};
use crate::error::Result;

impl Listener {
    /// Polls as [`accept`](Self::accept) does without a deadline. The waker of the last caller that
    /// polls is woken.
    ///
    /// # Errors
    /// Those of [`accept`](Self::accept) but the deadline.
    pub fn poll_accept(&self, context: &mut Context<'_>) -> Poll<Result<Incoming>> {
        let ids = self.listening_ids();
        let polled = poll_in_turn(context, |context| {
            ids.poll_request(ids.poll_slot(), context)
        });
        polled.map_ok(Incoming::new)
    }
}
