//! What layers above keep with an event loop.

use crate::messages::{Devices, OpenDevices, WatchedChannels};

/// The devices and completion channels of an event loop.
#[derive(Debug, Default)]
pub(crate) struct Extensions {
    /// Where devices are opened.
    pub(crate) devices: Devices,
    pub(crate) open_devices: OpenDevices,
    pub(crate) watched_channels: WatchedChannels,
}
