//! The descriptor that is readable while there is something to hear.

use std::io;
use std::sync::Arc;

use nix::sys::eventfd::{EfdFlags, EventFd};

/// An eventfd and whether it is raised. It changes with its file's events, under
/// the world's lock.
#[derive(Debug)]
pub(crate) struct Readiness {
    eventfd: Arc<EventFd>,
    raised: bool,
}

impl Readiness {
    pub(crate) fn new() -> io::Result<Self> {
        let eventfd = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(Self {
            eventfd: Arc::new(eventfd),
            raised: false,
        })
    }

    /// The descriptor, for whoever lends it out.
    pub(crate) fn eventfd(&self) -> Arc<EventFd> {
        Arc::clone(&self.eventfd)
    }

    pub(crate) fn set(&mut self, raised: bool) {
        if raised == self.raised {
            return;
        }
        self.raised = raised;
        // Neither can fail: the counter is 0 before the one and 1 before the other.
        let _ = if raised {
            self.eventfd.write(1).map(drop)
        } else {
            self.eventfd.read().map(drop)
        };
    }
}
