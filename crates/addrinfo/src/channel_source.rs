//! How a directory opens event channels.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use rdmacm_core::{Deadline, Event, EventChannel, Result};

/// The function by which a directory opens its event channels. By default it opens the
/// kernel's device.
#[derive(Clone, Default)]
pub(crate) struct ChannelSource(Option<Arc<dyn Fn() -> Result<EventChannel> + Send + Sync>>);

impl ChannelSource {
    pub(crate) fn new(open: impl Fn() -> Result<EventChannel> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(open)))
    }

    pub(crate) fn open(&self) -> Result<ResolutionChannel> {
        let channel = match &self.0 {
            Some(open) => open()?,
            None => EventChannel::open()?,
        };
        let is_private = self.0.is_none();
        Ok(ResolutionChannel {
            channel,
            is_private,
        })
    }
}

/// The channel of one resolution.
#[derive(Debug)]
pub(crate) struct ResolutionChannel {
    channel: EventChannel,
    /// Whether the caller cannot have a waker of it.
    is_private: bool,
}

impl ResolutionChannel {
    /// Waits for the next event.
    pub(crate) fn next(&self, deadline: Deadline) -> Result<Event> {
        if self.is_private {
            self.channel.next_kernel_event(deadline)
        } else {
            self.channel.next_event(deadline)
        }
    }
}

impl Deref for ResolutionChannel {
    type Target = EventChannel;

    fn deref(&self) -> &EventChannel {
        &self.channel
    }
}

impl fmt::Debug for ChannelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelSource").finish_non_exhaustive()
    }
}
