//! How an `AddrInfoResolver` opens event channels.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdmacm_core::{ChannelOptions, Deadline, Event, EventChannel, Result};

/// The function by which an `AddrInfoResolver` opens its event channels. By default it opens the
/// kernel's device.
#[derive(Clone, Default)]
pub(crate) struct ChannelSource(Option<Arc<dyn Fn() -> Result<EventChannel> + Send + Sync>>);

impl ChannelSource {
    pub(crate) fn new(open: impl Fn() -> Result<EventChannel> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(open)))
    }

    /// Opens a channel, and the kernel's device before `until`.
    pub(crate) fn open(&self, until: Option<Instant>) -> Result<ResolutionChannel> {
        let channel = if let Some(open) = &self.0 {
            open()?
        } else {
            open_device(until)?
        };
        let is_private = self.0.is_none();
        Ok(ResolutionChannel {
            channel,
            is_private,
        })
    }
}

/// Opens the kernel's device, and waits for its node if that is missing. The clock is read only then.
fn open_device(until: Option<Instant>) -> Result<EventChannel> {
    let open_within = |timeout| EventChannel::options().device_node_timeout(timeout).open();
    open_within(Duration::ZERO).or_else(|error| match device_node_timeout(until, Instant::now()) {
        Duration::ZERO => Err(error),
        timeout => open_within(timeout),
    })
}

/// How long to wait for the device's node.
fn device_node_timeout(until: Option<Instant>, now: Instant) -> Duration {
    let longest = ChannelOptions::DEFAULT_DEVICE_NODE_TIMEOUT;
    until.map_or(longest, |until| {
        until.saturating_duration_since(now).min(longest)
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_ends_the_wait_for_the_device() {
        let now = Instant::now();
        let longest = ChannelOptions::DEFAULT_DEVICE_NODE_TIMEOUT;
        let (short, long) = (Duration::from_millis(100), Duration::from_secs(15));
        assert_eq!(device_node_timeout(Some(now + short), now), short);
        assert_eq!(device_node_timeout(Some(now + long), now), longest);
        assert_eq!(device_node_timeout(Some(now), now + long), Duration::ZERO);
        assert_eq!(device_node_timeout(None, now), longest);
    }
}
