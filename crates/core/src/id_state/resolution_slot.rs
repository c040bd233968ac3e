//! The address resolution of an id, and its result.

use std::any::Any;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::event_failure::EventFailure;

/// The resolution of one id. An id has one at a time.
#[derive(Debug, Default)]
pub(crate) struct ResolutionSlot(Mutex<Slot>);

#[derive(Debug, Default)]
struct Slot {
    pending: Pending,
    /// The result was stored for the kernel's resolution of a service, whose event
    /// ends it.
    is_for_service: bool,
    /// The resolution succeeded, and its result has not been taken.
    is_untaken: bool,
    result: Option<Box<dyn Any + Send>>,
    failure: Option<EventFailure>,
}

/// What the next unread event ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pending {
    #[default]
    Nothing,
    /// A resolution outside the kernel.
    Resolution,
    /// The kernel's resolution of a service.
    Service,
}

impl ResolutionSlot {
    /// Begins a resolution outside the kernel.
    ///
    /// # Errors
    /// [`Error::Busy`] while one is pending or its result has not been taken.
    pub(crate) fn begin(&self) -> Result<()> {
        let mut slot = self.slot();
        if slot.is_pending() || slot.is_untaken {
            return Err(Error::Busy);
        }
        *slot = Slot {
            pending: Pending::Resolution,
            ..Slot::default()
        };
        Ok(())
    }

    /// Begins the kernel's resolution of a service.
    ///
    /// # Errors
    /// [`Error::Busy`] while a resolution is pending.
    pub(crate) fn begin_service(&self) -> Result<()> {
        let mut slot = self.slot();
        if slot.is_pending() {
            return Err(Error::Busy);
        }
        (slot.pending, slot.failure) = (Pending::Service, None);
        Ok(())
    }

    /// The kernel refused to resolve the service.
    pub(crate) fn cancel_service(&self) {
        self.slot().pending = Pending::Nothing;
    }

    /// Forgets the resolution.
    pub(crate) fn cancel(&self) {
        *self.slot() = Slot::default();
    }

    /// Stores the result of the pending resolution, until its event is read.
    pub(crate) fn store(&self, result: Option<Box<dyn Any + Send>>) {
        self.slot().result = result;
    }

    /// Ends the pending resolution without an event, and stores its result for the
    /// kernel's resolution of a service.
    pub(crate) fn store_for_service(&self, result: Box<dyn Any + Send>) {
        *self.slot() = Slot {
            is_for_service: true,
            is_untaken: true,
            result: Some(result),
            ..Slot::default()
        };
    }

    /// The event that ends the resolution is being read. An event of a service does
    /// not end an earlier resolution, whose result is kept.
    pub(crate) fn finish(&self, failure: Option<EventFailure>) {
        let mut slot = self.slot();
        if slot.pending == Pending::Resolution || slot.is_for_service {
            slot.is_untaken = failure.is_none() && slot.result.is_some();
        }
        (slot.pending, slot.is_for_service) = (Pending::Nothing, false);
        slot.failure = failure;
    }

    /// Takes the result if it is of this type and the resolution has ended.
    pub(crate) fn take<T: Any>(&self) -> Option<T> {
        let mut slot = self.slot();
        if slot.is_pending() {
            return None;
        }
        match slot.result.take()?.downcast() {
            Ok(result) => {
                (slot.is_untaken, slot.is_for_service) = (false, false);
                Some(*result)
            }
            Err(other) => {
                slot.result = Some(other);
                None
            }
        }
    }

    pub(crate) fn failure(&self) -> Option<EventFailure> {
        self.slot().failure
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.slot().is_pending()
    }

    /// The slot is valid between any two statements, so a panic that poisons the
    /// lock leaves it valid.
    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn is_pending(&self) -> bool {
        self.pending != Pending::Nothing
    }
}
