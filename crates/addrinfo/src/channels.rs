//! The channels on which the kernel is asked.

use std::fmt;
use std::sync::Arc;

use rdmacm_core::{EventChannel, Result};

/// How a directory opens its channels.
#[derive(Clone)]
pub(crate) struct Channels(Arc<dyn Fn() -> Result<EventChannel> + Send + Sync>);

impl Channels {
    pub(crate) fn new(open: impl Fn() -> Result<EventChannel> + Send + Sync + 'static) -> Self {
        Self(Arc::new(open))
    }

    pub(crate) fn open(&self) -> Result<EventChannel> {
        (self.0)()
    }
}

impl Default for Channels {
    /// The kernel's.
    fn default() -> Self {
        Self::new(EventChannel::open)
    }
}

impl fmt::Debug for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channels").finish_non_exhaustive()
    }
}
