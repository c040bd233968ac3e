//! How a directory opens event channels.

use std::fmt;
use std::sync::Arc;

use rdmacm_core::{EventChannel, Result};

/// The function by which a directory opens its event channels.
#[derive(Clone)]
pub(crate) struct ChannelSource(Arc<dyn Fn() -> Result<EventChannel> + Send + Sync>);

impl ChannelSource {
    pub(crate) fn new(open: impl Fn() -> Result<EventChannel> + Send + Sync + 'static) -> Self {
        Self(Arc::new(open))
    }

    pub(crate) fn open(&self) -> Result<EventChannel> {
        (self.0)()
    }
}

impl Default for ChannelSource {
    /// Opens the kernel's device.
    fn default() -> Self {
        Self::new(EventChannel::open)
    }
}

impl fmt::Debug for ChannelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelSource").finish_non_exhaustive()
    }
}
