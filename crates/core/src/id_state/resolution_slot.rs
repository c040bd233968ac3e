//! The address resolution of an id.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::event_failure::EventFailure;

/// The state of an id's resolution, outside the kernel or of a service. An id has one at a
/// time.
#[derive(Debug, Default)]
pub(crate) struct ResolutionSlot(Mutex<Slot>);

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The event that ends the resolution has not been read.
    is_pending: bool,
    failure: Option<EventFailure>,
}

impl ResolutionSlot {
    /// Begins a resolution.
    ///
    /// # Errors
    /// [`Error::Busy`] while one is pending.
    pub(crate) fn begin(&self) -> Result<()> {
        let mut slot = self.slot();
        if slot.is_pending {
            return Err(Error::Busy);
        }
        *slot = Slot {
            is_pending: true,
            failure: None,
        };
        Ok(())
    }

    /// Ends the pending resolution without an event.
    pub(crate) fn cancel(&self) {
        self.slot().is_pending = false;
    }

    /// The event that ends the resolution is being read.
    pub(crate) fn finish(&self, failure: Option<EventFailure>) {
        *self.slot() = Slot {
            is_pending: false,
            failure,
        };
    }

    pub(crate) fn failure(&self) -> Option<EventFailure> {
        self.slot().failure
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.slot().is_pending
    }

    /// The slot is valid between any two statements, so a panic that poisons the
    /// lock leaves it valid.
    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
