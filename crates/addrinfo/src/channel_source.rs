//! How a directory opens event channels.

use std::fmt;
use std::sync::Arc;

use rdmacm_core::{EventChannel, Result};

/// The function by which a directory opens its event channels. By default it opens the
/// kernel's device.
#[derive(Clone, Default)]
pub(crate) struct ChannelSource(Option<Arc<dyn Fn() -> Result<EventChannel> + Send + Sync>>);

impl ChannelSource {
    pub(crate) fn new(open: impl Fn() -> Result<EventChannel> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(open)))
    }

    pub(crate) fn open(&self) -> Result<EventChannel> {
        match &self.0 {
            Some(open) => open(),
            None => EventChannel::open(),
        }
    }
}

impl fmt::Debug for ChannelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelSource").finish_non_exhaustive()
    }
}
