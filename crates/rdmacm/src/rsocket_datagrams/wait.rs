//! Waiting for a datagram.

use std::task::Waker;

use super::socket::Socket;
use crate::connect::Attempt;
use crate::error::Cause;
use crate::event_loop::{WaitSource, wait_for};
use crate::messages::Interest;

impl Socket {
    /// Waits until `take` returns something, which the queue pair or the UDP socket brings.
    pub(super) async fn wait<T>(
        &self,
        attempt: &Attempt,
        take: impl FnMut(&Self) -> Option<T> + Unpin,
    ) -> Result<T, Cause> {
        let source = Arrivals { socket: self, take };
        Ok(wait_for(&attempt.event_loop, source, attempt.until).await?)
    }
}

struct Arrivals<'a, F> {
    socket: &'a Socket,
    take: F,
}

impl<T, F: FnMut(&Socket) -> Option<T>> WaitSource for Arrivals<'_, F> {
    type Item = T;

    fn take(&mut self) -> Option<T> {
        (self.take)(self.socket)
    }

    fn register(&mut self, key: u64, waker: &Waker) {
        self.socket.service().register(key, waker);
        let datagrams = self.socket.datagrams();
        datagrams.register(Interest::Arrival, key, waker);
    }

    fn deregister(&mut self, key: u64) {
        let datagrams = self.socket.datagrams();
        datagrams.deregister(Interest::Arrival, key);
        self.socket.service().deregister(key);
    }
}
