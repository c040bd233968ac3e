//! The runtime that polls the futures.

use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use super::NodeOptions;
use super::default_runtime::default_reactor;
use crate::event_loop::Sources;
use crate::runtime::{Reactor, Runtime};

type NewReactor = fn(OwnedFd) -> io::Result<Box<dyn Reactor>>;

#[derive(Clone, Copy)]
pub(super) struct RuntimeChoice(NewReactor);

impl Default for RuntimeChoice {
    fn default() -> Self {
        Self(default_reactor)
    }
}

impl RuntimeChoice {
    pub(super) fn register(self, sources: &Sources) -> io::Result<Option<Box<dyn Reactor>>> {
        let readiness = sources.as_fd().try_clone_to_owned()?;
        (self.0)(readiness).map(Some)
    }
}

impl fmt::Debug for RuntimeChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RuntimeChoice")
    }
}

impl NodeOptions {
    /// The runtime that watches the node's descriptor and runs its timers: tokio by default, with the
    /// feature `tokio`. Without it, a runtime must be set.
    #[must_use]
    pub fn runtime<R: Runtime>(mut self) -> Self {
        self.runtime = RuntimeChoice(R::reactor);
        self
    }
}
