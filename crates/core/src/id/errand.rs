//! Work that is done for an id away from the kernel.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};

use rdmacm_abi::EventNumber;

use super::IdHandle;
use super::state::{IdState, InFlight};
use crate::channel::Posted;
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
pub struct Errand {
    id: Weak<IdState>,
    ended: bool,
}

/// What an event is to end that nobody has read yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Awaited {
    #[default]
    Nothing,
    /// The errand, which is under way.
    Errand,
    /// The kernel's search for a service.
    Service,
}

/// What an id knows of its errand.
#[derive(Debug, Default)]
pub(crate) struct Desk {
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
    pub fn begin_errand(&self) -> Result<Errand> {
        let id = self.enter()?;
        let mut desk = id.state().desk();
        if desk.is_resolving() || desk.unread {
            return Err(Error::Busy);
        }
        *desk = Desk {
            awaited: Awaited::Errand,
            ..Desk::default()
        };
        Ok(Errand {
            id: Arc::downgrade(id.state()),
            ended: false,
        })
    }

    /// Takes what an errand brought, once, after the event of its end; `None` where
    /// there is nothing of this type.
    #[must_use]
    pub fn take_brought<T: Any>(&self) -> Option<T> {
        let id = self.enter().ok()?;
        let mut desk = id.state().desk();
        if desk.is_resolving() {
            return None;
        }
        let brought = desk.brought.take()?;
        match brought.downcast() {
            Ok(brought) => {
                (desk.unread, desk.left) = (false, false);
                Some(*brought)
            }
            Err(other) => {
                desk.brought = Some(other);
                None
            }
        }
    }

    /// What the event told that ended the id's last errand, or the kernel's search
    /// for a service; `None` before, and where it ended well.
    #[must_use]
    pub fn errand_failure(&self) -> Option<EventFailure> {
        self.enter().ok()?.state().desk().failure
    }

    /// Whether an errand is under way for the id, or the kernel resolves a service
    /// for it: until the event of the end is read.
    #[must_use]
    pub fn is_resolving(&self) -> bool {
        let resolving = |id: InFlight| id.state().desk().is_resolving();
        self.enter().is_ok_and(resolving)
    }
}

impl Desk {
    fn is_resolving(&self) -> bool {
        self.awaited != Awaited::Nothing
    }
}

impl Errand {
    /// Ends the errand with what it brings: well with a status of 0, otherwise
    /// badly, with a negative error number. What it brings waits with the id for
    /// [`IdHandle::take_brought`] and goes with it.
    pub fn end(mut self, status: i32, brings: impl Any + Send) {
        self.report(status, Some(Box::new(brings)));
    }

    /// Ends the errand with what waits for [`IdHandle::take_brought`] and without an
    /// event: somebody else will tell.
    pub fn leave(mut self, brings: impl Any + Send) {
        self.ended = true;
        if let Some(id) = self.id.upgrade() {
            *id.desk() = Desk {
                left: true,
                unread: true,
                brought: Some(Box::new(brings)),
                ..Desk::default()
            };
        }
    }

    /// Takes it back as if it had never begun: no event tells of it.
    pub fn withdraw(mut self) {
        self.ended = true;
        if let Some(id) = self.id.upgrade() {
            *id.desk() = Desk::default();
        }
    }

    fn report(&mut self, status: i32, brings: Option<Box<dyn Any + Send>>) {
        self.ended = true;
        let Some(id) = self.id.upgrade().filter(|id| id.is_open()) else {
            return;
        };
        id.desk().brought = brings;
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

impl Drop for Errand {
    fn drop(&mut self) {
        if !self.ended {
            self.report(-libc::ECANCELED, None);
        }
    }
}

impl fmt::Debug for Errand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Errand").finish_non_exhaustive()
    }
}

impl IdState {
    /// Whole between any two statements, so a panic elsewhere while it was locked
    /// leaves nothing broken.
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kernel is about to resolve a service.
    pub(super) fn resolve_service(&self) -> Result<()> {
        let mut desk = self.desk();
        if desk.is_resolving() {
            return Err(Error::Busy);
        }
        (desk.awaited, desk.failure) = (Awaited::Service, None);
        Ok(())
    }

    /// The kernel has refused to.
    pub(super) fn no_service(&self) {
        self.desk().awaited = Awaited::Nothing;
    }

    /// The event of an errand's end is being read, or of the kernel's search for a
    /// service, which is none of an errand's that was before it.
    pub(crate) fn errand_is_over(&self, failure: Option<EventFailure>) {
        let mut desk = self.desk();
        if desk.awaited == Awaited::Errand || desk.left {
            desk.unread = failure.is_none() && desk.brought.is_some();
        }
        (desk.awaited, desk.left) = (Awaited::Nothing, false);
        desk.failure = failure;
    }

    /// Queues an event of this id where the id is.
    fn post(&self, event: EventNumber, status: i32) {
        let place = self.place();
        place.channel.post(Posted {
            token: self.token(),
            event,
            status,
        });
    }
}
