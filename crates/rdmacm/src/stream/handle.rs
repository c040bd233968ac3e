//! A stream that its owner may drop before all that was written has arrived.

use std::ops::Deref;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rdmacm_core::Deadline;
use rdmacm_rsocket::How;

use super::connection::{LAST_ACKNOWLEDGEMENT, StreamConnection};
use super::queue_pair::StreamQueuePair;
use crate::connection::Established;
use crate::event_loop::block_on;

/// The pauses between two looks at a stream that was dropped.
const FIRST_PAUSE: Duration = Duration::from_micros(100);
const LAST_PAUSE: Duration = Duration::from_millis(20);

/// The owner of a stream. Dropping it disconnects without waiting: if there are writes under
/// way, or a peer that has closed the stream has not disconnected yet, a task of the blocking
/// executor waits for that, until a deadline.
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

impl Drop for StreamHandle {
    fn drop(&mut self) {
        self.0.end_descriptor();
        self.0.shut_down(How::Both);
        if self.0.is_ended() && !self.0.is_awaited() {
            return;
        }
        let connection = Arc::clone(&self.0);
        let event_loop = Arc::clone(connection.event_loop());
        let executor = event_loop.executor();
        executor.spawn(Box::new(move || linger(&connection)));
    }
}

/// Waits until the peer's device has acknowledged what was written, and this one the peer's last
/// message.
fn linger(connection: &StreamConnection) {
    let deadline = connection.options().close_deadline;
    if connection.event_loop().is_blocking() {
        // There is nobody to report a failure to.
        let _ = block_on(connection.event_loop(), connection.close(deadline));
        return block_on(connection.event_loop(), connection.wait_for_peer());
    }
    // This thread is none of the runtime's, and the runtime may have no task to wake.
    pause_while(deadline, || !connection.is_ended());
    pause_while(LAST_ACKNOWLEDGEMENT.into(), || connection.is_awaited());
}

fn pause_while(deadline: Deadline, mut is_under_way: impl FnMut() -> bool) {
    let until = deadline.until(Instant::now());
    let mut pause = FIRST_PAUSE;
    while is_under_way() && until.is_none_or(|until| Instant::now() < until) {
        thread::sleep(pause);
        pause = (pause * 2).min(LAST_PAUSE);
    }
}
