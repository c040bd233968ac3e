//! Waiting for bytes on a thread.

use std::io::IoSliceMut;

use scopeguard::ScopeGuard;

use super::connection::StreamConnection;
use super::receive_state::Reading;
use super::status::StreamInterest;
use crate::error::Result;
use crate::stage::Stage;

impl StreamConnection {
    /// Reads what arrives next on a thread that waits for nothing else: without a deadline or a
    /// keep-alive. `None` if there is more to the wait than that, or if the connection may have
    /// closed.
    pub(crate) fn read_on_thread(
        &self,
        reading: Reading,
        into: &mut [IoSliceMut<'_>],
    ) -> Option<Result<usize>> {
        let event_loop = self.event_loop();
        if !event_loop.is_blocking() {
            return None;
        }
        let queue_pair = self.queue_pair();
        let (key, failures) = (event_loop.new_key(), event_loop.failures());
        while let Some((thread, has_checked)) = queue_pair.register_thread(key, event_loop) {
            // Whatever comes from here on wakes the thread; this finds what came before. Mostly
            // nothing did.
            if self.may_be_closed() || !queue_pair.has_nothing_to_read(has_checked) {
                let read = self.try_read(reading, into);
                if read.is_some() || self.may_be_closed() {
                    queue_pair.deregister(StreamInterest::Readable, key);
                    event_loop.keep_thread(thread);
                    return read;
                }
            }
            // A caller's queue pair may panic while its thread reads events.
            let leaves = scopeguard::guard((), |()| {
                queue_pair.deregister(StreamInterest::Readable, key);
            });
            event_loop.park(&thread, failures);
            ScopeGuard::into_inner(leaves);
            queue_pair.withdraw_thread(key, thread, event_loop);
            let read = self.try_read(reading, into);
            if read.is_some() {
                queue_pair.wake_next_reader();
                return read;
            }
            if let Err(error) = event_loop.failed_since(failures) {
                return Some(Err(self.fail_at_once(Stage::Receive, error.into())));
            }
        }
        None
    }
}
