//! Failures of the event loop itself, which all waiters receive.

use rdmacm_core::{Error, Result};

use super::{EventLoop, wake_all};
use crate::sync::Ordering;

impl EventLoop {
    /// Reports a failure to all waiters. Later waits try again: what is short now, such as memory,
    /// may be available by then.
    pub(super) fn fail(&self, error: Error) {
        if self.runtime.is_some() {
            // The sources may still be readable.
            self.due.store(true, Ordering::Release);
        }
        if is_transient(&error) {
            return self.wake_runner();
        }
        let mut state = self.state();
        state.failure = Some(error);
        self.failures.fetch_add(1, Ordering::Release);
        let waiters: Vec<_> = state.tasks.iter().cloned().collect();
        let parked = state.parked.clone();
        drop(state);
        parked.unpark_all();
        wake_all(waiters);
    }

    /// How many failures there were so far.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Acquire)
    }

    /// The last failure, if there were more than `failures`.
    pub(crate) fn failed_since(&self, failures: u64) -> Result<()> {
        if self.failures() == failures {
            return Ok(());
        }
        self.state().failure.clone().map_or(Ok(()), Err)
    }
}

/// Whether repeating the call is all that it takes.
fn is_transient(error: &Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN))
}
