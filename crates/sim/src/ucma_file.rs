//! An open file of the connection manager's device.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use nix::sys::eventfd::EventFd;
use rdmacm_core::CommandNumber;
use rdmacm_core::ucma::{Call, UcmaFile};

use crate::command::{Blocked, CommandError, Kernel, abandon, execute, resume};
use crate::destroy;
use crate::event_queue::{EventQueue, FileKey};
use crate::sim_state::{SharedState, SimState};

/// An open file of the connection manager's device on a host.
pub(crate) struct SimFile {
    state: Arc<SharedState>,
    key: FileKey,
    eventfd: Arc<EventFd>,
}

impl SimFile {
    pub(crate) fn new(state: Arc<SharedState>, key: FileKey, eventfd: Arc<EventFd>) -> Self {
        Self {
            state,
            key,
            eventfd,
        }
    }

    fn queue<'state>(&self, state: &'state mut SimState) -> Option<&'state mut EventQueue> {
        let host = state.hosts.get_mut(self.key.host)?;
        host.files.get_mut(&self.key.serial)
    }

    fn kernel<'state>(&self, state: &'state mut SimState) -> Kernel<'state> {
        Kernel {
            state,
            host: self.key.host,
            file: self.key.serial,
        }
    }

    /// Sets a flag of the file and notifies the threads that wait on it.
    fn set(&self, flag: impl FnOnce(&mut EventQueue) -> &mut bool) {
        self.state.change(|state| {
            if let Some(queue) = self.queue(state) {
                *flag(queue) = true;
                queue.update_readiness();
            }
        });
    }

    /// Clears a flag of the file; `true` if it was set.
    fn take(&self, flag: impl FnOnce(&mut EventQueue) -> &mut bool) -> bool {
        let mut state = self.state.lock();
        self.queue(&mut state).is_some_and(|queue| {
            let was_set = std::mem::take(flag(queue));
            queue.update_readiness();
            was_set
        })
    }

    /// Reads an event. A program that reads again and again changes nothing by it.
    fn get_event(&self, call: &mut Call<'_>) -> Result<(), CommandError> {
        let mut state = self.state.lock();
        state.users.add_this();
        execute(&mut self.kernel(&mut state), call)?;
        state.waits.notify();
        Ok(())
    }

    /// Waits for the end of a command that blocks.
    fn finish(&self, blocked: Blocked, call: &mut Call<'_>) -> io::Result<()> {
        let ended = self.state.wait_for(None, None, |state| {
            let outcome = resume(&mut self.kernel(state), blocked, call)?;
            state.run_due();
            state.waits.notify();
            Some(outcome)
        });
        let outcome = match ended {
            Ok(outcome) => outcome.unwrap_or(Ok(())),
            Err(error) => {
                // Other commands wait until this one is over.
                let outcome = self
                    .state
                    .change(|state| abandon(&mut self.kernel(state), blocked, call));
                outcome.ok_or(error)?
            }
        };
        outcome.map_err(io::Error::from)
    }

    /// What ends a wait: a wake-up (`true`), a notification or an event.
    fn take_ready(&self, state: &mut SimState) -> Option<bool> {
        let queue = self.queue(state)?;
        if std::mem::take(&mut queue.is_woken) {
            queue.update_readiness();
            return Some(true);
        }
        (queue.is_notified || !queue.events.is_empty()).then_some(false)
    }
}

impl UcmaFile for SimFile {
    fn execute(&self, call: &mut Call<'_>) -> io::Result<()> {
        self.state.check_process()?;
        self.state.pass_hold(self.key.host, call.number());
        if call.number() == CommandNumber::GET_EVENT {
            return Ok(self.get_event(call)?);
        }
        let blocked = self
            .state
            .change(|state| execute(&mut self.kernel(state), call))?;
        match blocked {
            Some(blocked) => self.finish(blocked, call),
            None => Ok(()),
        }
    }

    fn wait(&self, until: Option<Instant>, other: Option<BorrowedFd<'_>>) -> io::Result<bool> {
        let ready = |state: &mut SimState| self.take_ready(state);
        let ended = self.state.wait_for(until, other, ready)?;
        Ok(ended.unwrap_or(false))
    }

    fn wake(&self) {
        self.set(|queue| &mut queue.is_woken);
    }

    fn take_wake(&self) -> bool {
        self.take(|queue| &mut queue.is_woken)
    }

    fn notify(&self) {
        self.set(|queue| &mut queue.is_notified);
    }

    fn take_notification(&self) -> bool {
        self.take(|queue| &mut queue.is_notified)
    }

    fn now(&self) -> Instant {
        self.state.lock().clock.now()
    }

    fn next_due(&self) -> Option<Instant> {
        let mut state = self.state.lock();
        // A program that only reads events gives no command that would.
        state.send_unsent();
        state.clock.next()
    }

    fn advance_to(&self, time: Instant) {
        self.state.lock().advance_to(time);
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }

    fn ucma_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl fmt::Debug for SimFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimFile")
            .field("host", &self.key.host)
            .field("file", &self.key.serial)
            .finish_non_exhaustive()
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        if self.state.is_in_child() {
            return;
        }
        self.state
            .change(|state| destroy::file(state, self.key.host, self.key.serial));
    }
}
