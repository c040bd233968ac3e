//! The address resolution of an id.

use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};

use crate::error::{Error, Result};
use crate::event_failure::EventFailure;

/// How the kernel's resolution of a service has ended. Empty until its event is read.
pub(crate) type Outcome = OnceLock<Result<(), EventFailure>>;

/// The resolution of one id, outside the kernel or the kernel's of a service. An id has
/// one at a time, until its event is read.
#[derive(Debug, Default)]
pub(crate) struct ResolutionSlot(Mutex<Slot>);

#[derive(Debug, Default)]
struct Slot {
    is_pending: bool,
    /// The last of the kernel's, which keeps the records of one.
    service: Option<Arc<Outcome>>,
}

impl ResolutionSlot {
    /// Begins a resolution outside the kernel.
    ///
    /// # Errors
    /// [`Error::Busy`] while one is pending.
    pub(crate) fn begin(&self) -> Result<()> {
        self.enter().map(drop)
    }

    /// Begins the kernel's resolution of a service by this command.
    ///
    /// # Errors
    /// [`Error::Busy`] while one is pending; those of the command.
    pub(crate) fn begin_service(
        &self,
        command: impl FnOnce() -> Result<()>,
    ) -> Result<Arc<Outcome>> {
        let outcome = Arc::default();
        // Before the kernel can report the event.
        let previous = self.enter()?.service.replace(Arc::clone(&outcome));
        if let Err(error) = command() {
            *self.slot() = Slot {
                is_pending: false,
                service: previous,
            };
            return Err(error);
        }
        Ok(outcome)
    }

    /// The resolution outside the kernel has no event.
    pub(crate) fn cancel(&self) {
        self.slot().is_pending = false;
    }

    /// The event that ends the resolution is being read.
    pub(crate) fn finish(&self, failure: Option<EventFailure>) {
        let mut slot = self.slot();
        slot.is_pending = false;
        if let Some(service) = &slot.service {
            // It has ended already if the event is of a later resolution outside the kernel.
            let _ = service.set(failure.map_or(Ok(()), Err));
        }
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.slot().is_pending
    }

    /// Whether this is the last resolution of a service.
    pub(crate) fn is_last_service(&self, outcome: &Arc<Outcome>) -> bool {
        let slot = self.slot();
        slot.service
            .as_ref()
            .is_some_and(|last| Arc::ptr_eq(last, outcome))
    }

    fn enter(&self) -> Result<MutexGuard<'_, Slot>> {
        let mut slot = self.slot();
        if slot.is_pending {
            return Err(Error::Busy);
        }
        slot.is_pending = true;
        Ok(slot)
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.0.lock()
    }
}
