//! Sending, receiving and accepting byte streams in futures that are written by hand.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::task::{Context, Poll, ready};

use super::cooperation::poll_in_turn;
use super::{Connection, RdmaListener, RdmaStream};
use crate::error::Result;
use crate::event_loop::PollSlot;
use crate::messages::Message;

impl Connection {
    /// Polls for the next message, as [`receive`](Self::receive) without a deadline. The last
    /// caller's waker is woken.
    ///
    /// # Errors
    /// Those of [`receive`](Self::receive) but the deadline.
    pub fn poll_receive(&self, context: &mut Context<'_>) -> Poll<Result<Option<Message>>> {
        poll_in_turn(context, |context| self.inner.poll_receive(context))
    }

    /// Sends a copy of a message once there is room for it, as [`send`](Self::send) without a
    /// deadline. The last caller's waker is woken.
    ///
    /// # Errors
    /// Those of [`send`](Self::send) but the deadline.
    pub fn poll_send(&self, context: &mut Context<'_>, message: &[u8]) -> Poll<Result<()>> {
        let slices = [IoSlice::new(message)];
        poll_in_turn(context, |context| self.inner.poll_send(context, &slices))
    }
}

impl RdmaListener {
    /// Polls as [`accept`](Self::accept) does. The waker of the last caller that polls is woken.
    ///
    /// # Errors
    /// Those of [`accept`](Self::accept).
    pub fn poll_accept(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(RdmaStream, SocketAddr)>> {
        let slot = &self.handshakes.poll_slot;
        let accepted = poll_in_turn(context, |context| self.poll_stream(slot, context));
        let stream = ready!(accepted)?;
        let peer = stream.peer_addr()?;
        Poll::Ready(Ok((stream, peer)))
    }

    /// Polls for the next stream, as the caller of a slot.
    pub(super) fn poll_stream(
        &self,
        slot: &PollSlot,
        context: &mut Context<'_>,
    ) -> Poll<Result<RdmaStream>> {
        let ids = self.listener.listening_ids();
        let accepted = self
            .handshakes
            .poll_accept(ids, &self.options, slot, context);
        accepted.map_ok(RdmaStream::new)
    }
}
