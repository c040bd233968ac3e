//! A stream that its owner may drop before all that was written has arrived.

use std::ops::Deref;
use std::sync::Arc;

use rdmacm_rsocket::How;

use super::connection::StreamConnection;
use super::lingering::LingeringStreams;
use super::queue_pair::StreamQueuePair;
use crate::established::Established;

/// The owner of a stream. Dropping it disconnects without waiting: if there are writes in
/// flight, or a peer that has closed the stream has not disconnected yet, the connection is kept
/// until that is over. In a forked child it does nothing.
#[derive(Debug)]
pub(crate) struct StreamHandle(Arc<StreamConnection>);

impl StreamHandle {
    /// A stream of the side that has connected, or accepted.
    pub(super) fn new(
        established: Established,
        queue_pair: Arc<StreamQueuePair>,
        has_connected: bool,
    ) -> Self {
        let connection = StreamConnection::new(established, queue_pair, has_connected);
        Self(Arc::new(connection))
    }
}

impl Deref for StreamHandle {
    type Target = StreamConnection;

    fn deref(&self) -> &StreamConnection {
        &self.0
    }
}

impl StreamHandle {
    /// Whether this process has inherited it by `fork(2)`: a thread of the parent may have held a lock
    /// of it then.
    pub(crate) fn is_in_child(&self) -> bool {
        self.0.queue_pair().device().context().is_in_child()
    }
}

impl Drop for StreamHandle {
    fn drop(&mut self) {
        if self.is_in_child() {
            return;
        }
        self.0.end_descriptor();
        self.0.shut_down(How::Both);
        if self.0.is_ended() && !self.0.is_awaited() {
            return;
        }
        LingeringStreams::add(&self.0);
    }
}
