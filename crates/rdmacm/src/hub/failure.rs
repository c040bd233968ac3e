//! What went wrong while reading or waiting, and who hears of it.

use std::sync::atomic::Ordering;
use std::task::Waker;

use rdmacm_core::{Error, Result};

use super::Hub;

impl Hub {
    /// Tells everyone who waits. Whoever waits afterwards tries again: what is short
    /// now, memory for one, may be there by then.
    pub(super) fn fail(&self, error: Error) {
        if self.armed.is_some() {
            // What may be there to read has not been.
            self.due.store(true, Ordering::Release);
        }
        if is_passing(&error) {
            return self.pass_on();
        }
        let mut state = self.state();
        state.failure = Some(error);
        self.failures.fetch_add(1, Ordering::Release);
        let waiters: Vec<_> = state.waiters.values().cloned().collect();
        drop(state);
        waiters.into_iter().for_each(Waker::wake);
    }

    /// How often there was a failure so far.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Acquire)
    }

    /// The last failure, where there was one since there were so many.
    pub(super) fn failed_since(&self, failures: u64) -> Result<()> {
        if self.failures() == failures {
            return Ok(());
        }
        self.state().failure.clone().map_or(Ok(()), Err)
    }
}

/// Whether the same call again is all that it takes.
fn is_passing(error: &Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN))
}
