//! Waiting for a datagram.

use std::net::SocketAddr;
use std::task::Waker;

use super::socket::{Received, Socket};
use crate::attempt::Attempt;
use crate::error::Cause;
use crate::event_loop::{WaitSource, wait_for};
use crate::messages::Interest;

impl Socket {
    /// Waits for the next datagram.
    pub(super) async fn wait(
        &self,
        attempt: &Attempt,
        into: &mut [u8],
    ) -> Result<(usize, SocketAddr), Cause> {
        let source = Arrivals {
            socket: self,
            into,
            has_more: false,
            waker: None,
        };
        wait_for(&attempt.event_loop, source, attempt.until).await?
    }
}

struct Arrivals<'a> {
    socket: &'a Socket,
    into: &'a mut [u8],
    /// Whether the last look stopped after `MAX_EVENTS` dropped datagrams.
    has_more: bool,
    /// Of the caller, once it is registered.
    waker: Option<Waker>,
}

impl Arrivals<'_> {
    /// Has a registered caller look again, if there is more.
    fn wake_for_more(&self) {
        if let Some(waker) = self.waker.as_ref().filter(|_| self.has_more) {
            waker.wake_by_ref();
        }
    }
}

impl WaitSource for Arrivals<'_> {
    type Item = Result<(usize, SocketAddr), Cause>;

    fn take(&mut self) -> Option<Self::Item> {
        match self.socket.take(self.into) {
            Received::Datagram(length, from) => Some(Ok((length, from))),
            Received::Failed(cause) => Some(Err(cause)),
            received => {
                self.has_more = matches!(received, Received::Dropped);
                self.wake_for_more();
                None
            }
        }
    }

    fn register(&mut self, key: u64, waker: &Waker) {
        self.socket.service().register(key, waker);
        let datagrams = self.socket.datagrams();
        datagrams.register(Interest::ReceiveReady, key, waker);
        self.waker = Some(waker.clone());
        self.wake_for_more();
    }

    fn deregister(&mut self, key: u64) {
        let datagrams = self.socket.datagrams();
        datagrams.deregister(Interest::ReceiveReady, key);
        self.socket.service().deregister(key);
    }
}
