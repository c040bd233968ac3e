//! Ending waits when a context is closed.

use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::error::Result;
use crate::readable::wait_error;
use crate::removal::Removals;

/// Descriptors that end a context's waits.
#[derive(Debug)]
pub(crate) struct CloseSignal {
    /// Readable once the context is closed.
    closed: EventFd,
    /// The kernel's announcements of removed devices. `None` for a simulated device, and if the
    /// sandbox forbids them: removal then shows in other errors, or not at all. In a network
    /// namespace of a user namespace other than the initial one there are none
    /// (`uevent_net_init`).
    removals: Option<Removals>,
}

impl CloseSignal {
    /// `has_node`: whether the device is the kernel's. Nobody would read what it announces of
    /// others, and a socket with unread announcements ends every wait at once.
    pub(crate) fn new(has_node: bool) -> Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ok(Self {
            closed: EventFd::from_flags(flags).map_err(wait_error)?,
            removals: has_node.then(Removals::open).and_then(Result::ok),
        })
    }

    pub(crate) fn closed(&self) -> BorrowedFd<'_> {
        self.closed.as_fd()
    }

    pub(crate) fn removals(&self) -> Option<&Removals> {
        self.removals.as_ref()
    }

    /// Ends all current and future waits.
    pub(crate) fn set(&self) {
        // The counter cannot overflow: this is called only a few times.
        let _ = self.closed.write(1);
    }
}
