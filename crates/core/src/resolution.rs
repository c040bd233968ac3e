//! Address resolution outside the kernel.

use std::fmt;
use std::sync::{Arc, Weak};

use rdmacm_abi::EventNumber;

use crate::error::Result;
use crate::id_handle::IdHandle;
use crate::id_state::IdState;

/// An address resolution of an id that runs outside the kernel, such as a lookup of
/// a name. It ends like the kernel's, with an
/// [`AddrInfoResolved`](crate::EventKind::AddrInfoResolved) or
/// [`AddrInfoError`](crate::EventKind::AddrInfoError) event of the id, on every
/// kernel.
///
/// It keeps neither the id nor its channel alive. Dropping it ends the resolution
/// with `ECANCELED`.
#[must_use = "dropping it ends the resolution with ECANCELED"]
pub struct PendingResolution {
    id: Weak<IdState>,
    has_ended: bool,
}

impl IdHandle {
    /// Begins an address resolution outside the kernel. An id has one at a time, until
    /// its event is read.
    ///
    /// # Errors
    /// [`Error::Busy`](crate::Error::Busy) during that time, and while the kernel
    /// resolves a service for the id; [`Error::IdDestroyed`](crate::Error::IdDestroyed).
    pub fn begin_resolution(&self) -> Result<PendingResolution> {
        let id = self.enter()?;
        id.resolution().begin()?;
        Ok(PendingResolution {
            id: Arc::downgrade(id.state()),
            has_ended: false,
        })
    }

    /// Whether a resolution of the id is pending, or the kernel resolves a service
    /// for it: until the event is read.
    #[must_use]
    pub fn is_resolving(&self) -> bool {
        self.enter().is_ok_and(|id| id.resolution().is_pending())
    }
}

impl PendingResolution {
    /// Ends the resolution with an event of this status: 0 for success, otherwise a
    /// negative error number.
    pub fn finish(mut self, status: i32) {
        self.report(status);
    }

    /// Ends the resolution without an event.
    pub fn cancel(mut self) {
        self.has_ended = true;
        if let Some(id) = self.id.upgrade() {
            id.resolution().cancel();
        }
    }

    fn report(&mut self, status: i32) {
        self.has_ended = true;
        let Some(id) = self.id.upgrade().filter(|id| id.is_open()) else {
            return;
        };
        let event = match status {
            0 => EventNumber::ADDRINFO_RESOLVED,
            _ => EventNumber::ADDRINFO_ERROR,
        };
        id.push_local_event(event, status);
    }
}

impl Drop for PendingResolution {
    fn drop(&mut self) {
        if !self.has_ended {
            self.report(-libc::ECANCELED);
        }
    }
}

impl fmt::Debug for PendingResolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingResolution").finish_non_exhaustive()
    }
}
