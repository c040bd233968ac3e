//! Without the feature `tokio` there is no default runtime.

use std::io;
use std::os::fd::OwnedFd;

use crate::runtime::Reactor;

pub(super) fn default_reactor(_: OwnedFd) -> io::Result<Box<dyn Reactor>> {
    let reason = "no runtime: open a node with NodeOptions::runtime, or enable the feature tokio";
    Err(io::Error::new(io::ErrorKind::Unsupported, reason))
}
