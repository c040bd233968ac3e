//! A device for unit tests of this crate, which the simulator cannot stand in for:
//! it is built on this crate.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use nix::sys::eventfd::EventFd;
use rdmacm_abi::CommandNumber;

use super::{Call, Device};

/// Carries out every command, with zeros for an answer, and has no events.
#[derive(Debug)]
pub(crate) struct Yes(EventFd);

impl Yes {
    pub(crate) fn new() -> Self {
        Self(EventFd::new().unwrap())
    }
}

impl Device for Yes {
    fn execute(&self, call: &mut Call<'_>) -> io::Result<()> {
        match call.number() {
            CommandNumber::GET_EVENT => Err(io::ErrorKind::WouldBlock.into()),
            _ => Ok(()),
        }
    }

    fn wait(&self, _until: Option<Instant>) -> io::Result<bool> {
        Ok(false)
    }

    fn wake(&self) {}

    fn take_wake(&self) -> bool {
        false
    }

    fn look_again(&self) {}

    fn take_look(&self) -> bool {
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
