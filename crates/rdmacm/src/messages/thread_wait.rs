//! Waiting for a message without the future of a wait.

use std::time::Duration;

use rdmacm_core::Result;
use scopeguard::ScopeGuard;

use super::connection::MessageConnection;
use super::state::Arrival;
use super::waiters::Interest;

impl MessageConnection {
    /// The next message that comes while the caller polls, before it sleeps.
    pub(super) fn receive_busily(&self, time: Duration) -> Option<Arrival> {
        let next = || self.queue_pair().next_arrival();
        let is_over = || self.id().queue().is_ready();
        let watch = || self.queue_pair().watch_arrivals();
        let busy = &self.queue_pair().busy_polling;
        busy.poll(time, is_over, watch, next)
    }

    /// Waits for the next message on a thread that waits for nothing else: without a deadline
    /// or a keep-alive. `None` if there is more to the wait than that, or if the connection
    /// may have closed.
    ///
    /// # Errors
    /// Why the event loop has failed.
    pub(super) fn sleep_on_thread(&self) -> Option<Result<Arrival>> {
        let (event_loop, queue_pair) = (self.event_loop(), self.queue_pair());
        let (key, failures) = (event_loop.new_key(), event_loop.failures());
        while let Some(thread) = queue_pair.register_thread(key, event_loop) {
            // Whatever comes from here on wakes the thread; this finds what came before.
            let arrival = queue_pair.next_arrival();
            let is_over = arrival.is_some() || self.id().queue().is_ready();
            if is_over {
                queue_pair.deregister(Interest::ReceiveReady, key);
                event_loop.keep_thread(thread);
                return arrival.map(Ok);
            }
            // A caller's queue pair may panic while its thread reads events.
            let leaves =
                scopeguard::guard((), |()| queue_pair.deregister(Interest::ReceiveReady, key));
            event_loop.park(&thread, failures);
            ScopeGuard::into_inner(leaves);
            let arrival = queue_pair.next_arrival_of(key, thread, event_loop);
            if arrival.is_some() {
                return arrival.map(Ok);
            }
            if let Err(error) = event_loop.failed_since(failures) {
                return Some(Err(error));
            }
        }
        None
    }
}
