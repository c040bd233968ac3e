//! The descriptor that is readable while a file has something to read.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use nix::sys::eventfd::{EfdFlags, EventFd};

/// An eventfd and whether it is readable. It changes with its file's events, under
/// the lock of the simulation.
#[derive(Debug)]
pub(crate) struct Readiness {
    eventfd: Arc<EventFd>,
    is_readable: bool,
}

impl Readiness {
    pub(crate) fn new() -> io::Result<Self> {
        let eventfd = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(Self {
            eventfd: Arc::new(eventfd),
            is_readable: false,
        })
    }

    pub(crate) fn eventfd(&self) -> Arc<EventFd> {
        Arc::clone(&self.eventfd)
    }

    pub(crate) fn descriptor(&self) -> i32 {
        self.eventfd.as_raw_fd()
    }

    pub(crate) fn set(&mut self, is_readable: bool) {
        if is_readable == self.is_readable {
            return;
        }
        self.is_readable = is_readable;
        // Neither can fail: the counter is 0 before the one and 1 before the other.
        let _ = if is_readable {
            self.eventfd.write(1).map(drop)
        } else {
            self.eventfd.read().map(drop)
        };
    }
}
