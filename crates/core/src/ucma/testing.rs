//! A ucma file for unit tests of this crate. They cannot use the simulator,
//! which depends on this crate.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use nix::sys::eventfd::EventFd;
use rdmacm_abi::CommandNumber;

use super::{Call, UcmaFile};

/// Accepts every command with a response of zeros, and has no events.
#[derive(Debug)]
pub(crate) struct AcceptAll(EventFd);

impl AcceptAll {
    pub(crate) fn new() -> Self {
        Self(EventFd::new().unwrap())
    }
}

impl UcmaFile for AcceptAll {
    fn execute(&self, call: &mut Call<'_>) -> io::Result<()> {
        match call.number() {
            CommandNumber::GET_EVENT => Err(io::ErrorKind::WouldBlock.into()),
            _ => Ok(()),
        }
    }

    fn wait(&self, _until: Option<Instant>, _other: Option<BorrowedFd<'_>>) -> io::Result<bool> {
        Ok(false)
    }

    fn wake(&self) {}

    fn take_wake(&self) -> bool {
        false
    }

    fn notify(&self) {}

    fn take_notification(&self) -> bool {
        false
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn ucma_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
