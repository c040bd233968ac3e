//! Commands that take their time.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::kernel_command::KernelCommand;

/// A command that waits, from [`Host::hold_next`](crate::Host::hold_next). Dropping this lets it
/// go on.
#[derive(Debug)]
#[must_use = "dropping it lets the command go on"]
pub struct HeldCommand(Arc<Hold>);

impl HeldCommand {
    /// Waits until a program has given the command. That does not move the clock.
    pub fn wait(&self) {
        let mut state = self.0.state();
        self.0
            .changed
            .wait_while(&mut state, |state| !state.is_issued);
    }
}

impl Drop for HeldCommand {
    fn drop(&mut self) {
        // A forked child has none of the threads that wait, one of which may have locked the state.
        if self.0.process == std::process::id() {
            self.0.state().is_released = true;
            self.0.changed.notify_all();
        }
    }
}

/// What a command waits for before it does anything.
#[derive(Debug)]
pub(crate) struct Hold {
    command: KernelCommand,
    state: Mutex<State>,
    changed: Condvar,
    process: u32,
}

#[derive(Debug, Default)]
struct State {
    is_issued: bool,
    is_released: bool,
}

impl Hold {
    pub(crate) fn new(command: KernelCommand) -> (Arc<Self>, HeldCommand) {
        let hold = Arc::new(Self {
            command,
            state: Mutex::default(),
            changed: Condvar::new(),
            process: std::process::id(),
        });
        (Arc::clone(&hold), HeldCommand(hold))
    }

    pub(crate) fn is_for(&self, command: KernelCommand) -> bool {
        self.command == command
    }

    pub(crate) fn is_released(&self) -> bool {
        self.state().is_released
    }

    /// The command is given. Returns once it may go on.
    pub(crate) fn pass(&self) {
        let mut state = self.state();
        state.is_issued = true;
        self.changed.notify_all();
        self.changed
            .wait_while(&mut state, |state| !state.is_released);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}
