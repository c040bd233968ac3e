//! tokio is the default runtime.

use std::io;
use std::os::fd::OwnedFd;

use crate::runtime::{Reactor, Runtime};
use crate::tokio::Tokio;

pub(super) fn default_reactor(readiness: OwnedFd) -> io::Result<Box<dyn Reactor>> {
    Tokio::reactor(readiness)
}
