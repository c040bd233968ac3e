//! A CONNECT command that runs on the blocking executor.

use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rdmacm_core::{CmId, QueuePair};

/// A CONNECT command of iWARP on the blocking executor. Destroying a queue pair waits for
/// its CONNECT command, so the queue pair of an aborted connect is kept until the command
/// has returned: dropping the last reference does not block the caller.
#[derive(Default)]
pub(crate) struct Connecting(Mutex<State>);

#[derive(Default)]
struct State {
    is_running: bool,
    queue_pair: Option<Arc<dyn QueuePair>>,
}

impl Connecting {
    /// Runs CONNECT. What was aborted meanwhile is dropped afterwards.
    pub(crate) fn run(&self, connect: impl FnOnce()) {
        self.state().is_running = true;
        connect();
        let mut state = self.state();
        state.is_running = false;
        let queue_pair = state.queue_pair.take();
        drop(state);
        drop(queue_pair);
    }

    /// Drops the id. A CONNECT command that is running destroys it when it returns; one
    /// that has not begun fails.
    pub(super) fn abort(&self, id: CmId, queue_pair: Option<&Arc<dyn QueuePair>>) {
        let mut state = self.state();
        drop(id);
        if state.is_running {
            state.queue_pair = queue_pair.map(Arc::clone);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connecting").finish_non_exhaustive()
    }
}
