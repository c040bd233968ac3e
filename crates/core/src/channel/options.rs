//! How to open a channel.

use std::sync::{Arc, Mutex};

use super::{EventChannel, Post, Shared};
use crate::device::{Device, KernelDevice};
use crate::dialect::{Choice, Dialect};
use crate::error::Result;
use crate::known::Known;

/// How to open an [`EventChannel`].
#[derive(Debug, Default)]
pub struct ChannelOptions {
    device: Option<Arc<dyn Device>>,
    dialect: Option<Dialect>,
}

impl ChannelOptions {
    /// Uses this set of address commands instead of finding out which ones the
    /// kernel understands.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// Talks to this device instead of opening the kernel's.
    #[must_use]
    pub fn device(mut self, device: Arc<dyn Device>) -> Self {
        self.device = Some(device);
        self
    }

    /// Opens the channel.
    ///
    /// # Errors
    /// Those of [`EventChannel::open`].
    pub fn open(self) -> Result<EventChannel> {
        let device = match self.device {
            Some(device) => device,
            None => Arc::new(KernelDevice::open()?),
        };
        Ok(EventChannel {
            shared: Arc::new(Shared {
                device,
                dialect: Choice::new(self.dialect),
                known: Known::default(),
                owners: Mutex::default(),
                post: Post::default(),
            }),
        })
    }
}
