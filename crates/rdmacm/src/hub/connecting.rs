//! A CONNECT that runs elsewhere.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rdmacm_core::{CmId, QueuePair};

/// A CONNECT of iWARP's, which runs elsewhere, and the queue pair of one that nobody
/// waits for any more. Destroying a queue pair waits for its CONNECT: it is kept until
/// that has returned, so that whoever lets go of it last does not wait.
#[derive(Default)]
pub(crate) struct Connecting(Mutex<State>);

#[derive(Default)]
struct State {
    runs: bool,
    kept: Option<Arc<dyn QueuePair>>,
}

impl Connecting {
    /// Runs CONNECT. What was given up meanwhile goes at its end.
    pub(crate) fn run(&self, connect: impl FnOnce()) {
        self.state().runs = true;
        connect();
        let mut state = self.state();
        state.runs = false;
        let kept = state.kept.take();
        drop(state);
        drop(kept);
    }

    /// Ends the id. A CONNECT that runs destroys it when it returns; one that has not
    /// begun finds none.
    pub(super) fn give_up(&self, id: CmId, queue_pair: Option<&Arc<dyn QueuePair>>) {
        let mut state = self.state();
        drop(id);
        if state.runs {
            state.kept = queue_pair.map(Arc::clone);
        }
    }

    /// Whole between any two statements, so a panic elsewhere while it was locked
    /// leaves nothing broken.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connecting").finish_non_exhaustive()
    }
}
