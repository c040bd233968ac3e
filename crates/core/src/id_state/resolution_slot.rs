//! The address resolution of an id.

use parking_lot::{Mutex, MutexGuard};

use crate::error::{Error, Result};
use crate::event_failure::EventFailure;

/// The resolution of one id, outside the kernel or the kernel's of a service. An id has
/// one at a time, until its event is read.
#[derive(Debug, Default)]
pub(crate) struct ResolutionSlot(Mutex<Slot>);

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    is_pending: bool,
    /// Of the last one.
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

    /// The resolution has no event.
    pub(crate) fn cancel(&self) {
        *self.slot() = Slot::default();
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

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.0.lock()
    }
}
