//! Work that is done for an id away from the kernel.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};

use rdmacm_abi::EventNumber;

use super::IdHandle;
use super::state::{IdState, InFlight};
use crate::channel::LocalEvent;
use crate::error::{Error, Result};
use crate::event::EventFailure;

/// Work that is done for an id away from the kernel, such as looking up a name,
/// and whose end is an event of the id like the kernel's own: an
/// [`AddrInfoResolved`](crate::EventKind::AddrInfoResolved) or
/// [`AddrInfoError`](crate::EventKind::AddrInfoError) that makes the channel's
/// descriptor readable on every kernel.
///
/// It keeps neither the id nor its channel alive. Dropped without an
/// [`end`](Self::end), it ends with `ECANCELED`, so that nobody waits for ever.
pub struct PendingResolution {
    id: Weak<IdState>,
    ended: bool,
}

/// What an event is to end that nobody has read yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Awaited {
    #[default]
    Nothing,
    /// The errand, which is under way.
    PendingResolution,
    /// The kernel's search for a service.
    Service,
}

/// What an id knows of its errand.
#[derive(Debug, Default)]
pub(crate) struct ResolutionSlot {
    awaited: Awaited,
    /// What was brought was left here for the event of a service to tell of.
    left: bool,
    /// It ended well and nobody has taken what it brought.
    unread: bool,
    brought: Option<Box<dyn Any + Send>>,
    failure: Option<EventFailure>,
}

impl IdHandle {
    /// Begins an errand. An id has one at a time, until the event of its end is read
    /// and, if it ended well, what it brought is taken.
    ///
    /// # Errors
    /// [`Error::Busy`] while there is one, or the kernel resolves a service for
    /// the id; [`Error::IdGone`].
    pub fn begin_resolution(&self) -> Result<PendingResolution> {
        let id = self.enter()?;
        let mut slot = id.state().resolution_slot();
        if slot.is_resolving() || slot.unread {
            return Err(Error::Busy);
        }
        *slot = ResolutionSlot {
            awaited: Awaited::PendingResolution,
            ..ResolutionSlot::default()
        };
        Ok(PendingResolution {
            id: Arc::downgrade(id.state()),
            ended: false,
        })
    }

    /// Takes what an errand brought, once, after the event of its end; `None` where
    /// there is nothing of this type.
    #[must_use]
    pub fn take_result<T: Any>(&self) -> Option<T> {
        let id = self.enter().ok()?;
        let mut slot = id.state().resolution_slot();
        if slot.is_resolving() {
            return None;
        }
        let brought = slot.brought.take()?;
        match brought.downcast() {
            Ok(brought) => {
                (slot.unread, slot.left) = (false, false);
                Some(*brought)
            }
            Err(other) => {
                slot.brought = Some(other);
                None
            }
        }
    }

    /// What the event told that ended the id's last errand, or the kernel's search
    /// for a service; `None` before, and where it ended well.
    #[must_use]
    pub fn resolution_failure(&self) -> Option<EventFailure> {
        self.enter().ok()?.state().resolution_slot().failure
    }

    /// Whether an errand is under way for the id, or the kernel resolves a service
    /// for it: until the event of the end is read.
    #[must_use]
    pub fn is_resolving(&self) -> bool {
        let resolving = |id: InFlight| id.state().resolution_slot().is_resolving();
        self.enter().is_ok_and(resolving)
    }
}

impl ResolutionSlot {
    fn is_resolving(&self) -> bool {
        self.awaited != Awaited::Nothing
    }
}

impl PendingResolution {
    /// Ends the errand with what it brings: well with a status of 0, otherwise
    /// badly, with a negative error number. What it brings waits with the id for
    /// [`IdHandle::take_result`] and goes with it.
    pub fn end(mut self, status: i32, brings: impl Any + Send) {
        self.report(status, Some(Box::new(brings)));
    }

    /// Ends the errand with what waits for [`IdHandle::take_result`] and without an
    /// event: somebody else will tell.
    pub fn leave(mut self, brings: impl Any + Send) {
        self.ended = true;
        if let Some(id) = self.id.upgrade() {
            *id.resolution_slot() = ResolutionSlot {
                left: true,
                unread: true,
                brought: Some(Box::new(brings)),
                ..ResolutionSlot::default()
            };
        }
    }

    /// Takes it back as if it had never begun: no event tells of it.
    pub fn withdraw(mut self) {
        self.ended = true;
        if let Some(id) = self.id.upgrade() {
            *id.resolution_slot() = ResolutionSlot::default();
        }
    }

    fn report(&mut self, status: i32, brings: Option<Box<dyn Any + Send>>) {
        self.ended = true;
        let Some(id) = self.id.upgrade().filter(|id| id.is_open()) else {
            return;
        };
        id.resolution_slot().brought = brings;
        id.post(ending(status), status);
    }
}

/// The event that tells of this end.
fn ending(status: i32) -> EventNumber {
    if status == 0 {
        EventNumber::ADDRINFO_RESOLVED
    } else {
        EventNumber::ADDRINFO_ERROR
    }
}

impl Drop for PendingResolution {
    fn drop(&mut self) {
        if !self.ended {
            self.report(-libc::ECANCELED, None);
        }
    }
}

impl fmt::Debug for PendingResolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingResolution").finish_non_exhaustive()
    }
}

impl IdState {
    /// Whole between any two statements, so a panic elsewhere while it was locked
    /// leaves nothing broken.
    fn resolution_slot(&self) -> MutexGuard<'_, ResolutionSlot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kernel is about to resolve a service.
    pub(super) fn resolve_service(&self) -> Result<()> {
        let mut slot = self.resolution_slot();
        if slot.is_resolving() {
            return Err(Error::Busy);
        }
        (slot.awaited, slot.failure) = (Awaited::Service, None);
        Ok(())
    }

    /// The kernel has refused to.
    pub(super) fn no_service(&self) {
        self.resolution_slot().awaited = Awaited::Nothing;
    }

    /// The event of an errand's end is being read, or of the kernel's search for a
    /// service, which is none of an errand's that was before it.
    pub(crate) fn errand_is_over(&self, failure: Option<EventFailure>) {
        let mut slot = self.resolution_slot();
        if slot.awaited == Awaited::PendingResolution || slot.left {
            slot.unread = failure.is_none() && slot.brought.is_some();
        }
        (slot.awaited, slot.left) = (Awaited::Nothing, false);
        slot.failure = failure;
    }

    /// Queues an event of this id where the id is.
    fn post(&self, event: EventNumber, status: i32) {
        let place = self.place();
        place.channel.post(LocalEvent {
            token: self.token(),
            event,
            status,
        });
    }
}
