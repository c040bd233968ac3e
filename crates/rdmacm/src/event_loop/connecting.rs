//! A CONNECT command that runs on the blocking executor.

use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rdmacm_core::{CmId, QueuePair};

use super::HandshakePermit;

/// A CONNECT command of iWARP on the blocking executor. Destroying a queue pair waits for
/// its CONNECT command, so the queue pair of an aborted connect is kept until the command
/// has returned: dropping the last reference does not block the caller.
pub(crate) struct Connecting(Mutex<State>);

struct State {
    is_running: bool,
    queue_pair: Option<Arc<dyn QueuePair>>,
    /// Until the command has returned, or will not run.
    permit: Option<HandshakePermit>,
}

impl Connecting {
    pub(super) fn new(permit: HandshakePermit) -> Self {
        Self(Mutex::new(State {
            is_running: false,
            queue_pair: None,
            permit: Some(permit),
        }))
    }

    /// Runs CONNECT. What was aborted meanwhile is dropped afterwards.
    pub(crate) fn run(&self, connect: impl FnOnce()) {
        self.state().is_running = true;
        connect();
        let mut state = self.state();
        state.is_running = false;
        let (queue_pair, permit) = (state.queue_pair.take(), state.permit.take());
        drop(state);
        drop((queue_pair, permit));
    }

    /// Drops the id. A CONNECT command that is running destroys it when it returns; one
    /// that has not begun fails.
    pub(super) fn abort(&self, id: CmId, queue_pair: Option<&Arc<dyn QueuePair>>) {
        let mut state = self.state();
        drop(id);
        if state.is_running {
            state.queue_pair = queue_pair.map(Arc::clone);
        }
        let is_running = state.is_running;
        let permit = state.permit.as_mut().filter(|_| is_running);
        let woken = permit.map(HandshakePermit::abandon);
        drop(state);
        if let Some(woken) = woken {
            woken.wake();
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
