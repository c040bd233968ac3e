//! How those who wait hear that a context has ended.

use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::error::Result;
use crate::readable::waiting;
use crate::removal::Removals;

/// What a context's waits end by.
#[derive(Debug)]
pub(crate) struct CloseSignal {
    /// Readable for good once the context has ended.
    ended: EventFd,
    /// Where the kernel announces the device's removal. Not to be had in every
    /// sandbox: there it is heard of by other errors, or not at all.
    removals: Option<Removals>,
}

impl CloseSignal {
    pub(crate) fn new() -> Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ok(Self {
            ended: EventFd::from_flags(flags).map_err(waiting)?,
            removals: Removals::open().ok(),
        })
    }

    pub(crate) fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    pub(crate) fn removals(&self) -> Option<&Removals> {
        self.removals.as_ref()
    }

    /// Wakes all who wait, and those who will.
    pub(crate) fn set(&self) {
        // It cannot be full: nothing else is written, and this a few times at most.
        let _ = self.ended.write(1);
    }
}
