//! Threads that wait for tasks.

use std::collections::VecDeque;
use std::fmt;
// Not of parking_lot: see `crate::sync`.
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::BlockingTask;

/// The tasks that idle threads are about to take.
pub(super) struct Threads {
    state: Mutex<State>,
    changed: Condvar,
    idle_time: Duration,
}

#[derive(Default)]
struct State {
    /// No more than there are idle threads.
    tasks: VecDeque<BlockingTask>,
    idle: usize,
    is_closed: bool,
}

impl Threads {
    /// Of threads that end when they have been idle for so long.
    pub(super) fn new(idle_time: Duration) -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::default(),
            idle_time,
        }
    }

    /// Gives a task to an idle thread; returns it if there is none.
    pub(super) fn give(&self, task: BlockingTask) -> Option<BlockingTask> {
        let mut state = self.state();
        if state.idle <= state.tasks.len() {
            return Some(task);
        }
        state.tasks.push_back(task);
        drop(state);
        self.changed.notify_one();
        None
    }

    /// Runs tasks, until none has come for the idle time or the executor was dropped.
    pub(super) fn run_until_idle(&self) {
        while let Some(task) = self.next() {
            task();
        }
    }

    fn next(&self) -> Option<BlockingTask> {
        let mut state = self.state();
        state.idle += 1;
        let is_waiting = |state: &mut State| state.tasks.is_empty() && !state.is_closed;
        let changed = &self.changed;
        let waited = changed.wait_timeout_while(state, self.idle_time, is_waiting);
        (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.idle -= 1;
        state.tasks.pop_front()
    }

    /// Ends the threads that are idle.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    #[cfg(test)]
    pub(super) fn while_locked(&self, work: impl FnOnce()) {
        let state = self.state();
        work();
        drop(state);
    }

    #[cfg(test)]
    pub(super) fn idle(&self) -> usize {
        self.state().idle
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads").finish_non_exhaustive()
    }
}
