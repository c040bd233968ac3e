//! How to open a channel.

use std::sync::Arc;
use std::time::Duration;

use super::EventChannel;
use crate::address_abi::AddressAbi;
use crate::channel_state::ChannelState;
use crate::error::Result;
use crate::rdma_devices::RdmaDevices;
use crate::ucma::{ChannelFile, KernelFile, UDEV_TIME, UcmaFile};

/// How to open an [`EventChannel`].
#[derive(Debug, Default)]
pub struct ChannelOptions {
    ucma: Option<Arc<dyn UcmaFile>>,
    devices: Option<Arc<dyn RdmaDevices>>,
    address_abi: Option<AddressAbi>,
    device_node_timeout: Option<Duration>,
}

impl ChannelOptions {
    /// The default of [`device_node_timeout`](Self::device_node_timeout): 5 s.
    pub const DEFAULT_DEVICE_NODE_TIMEOUT: Duration = UDEV_TIME;

    /// Uses this set of address commands instead of detecting which ones the
    /// kernel supports.
    #[must_use]
    pub fn address_abi(mut self, address_abi: AddressAbi) -> Self {
        self.address_abi = Some(address_abi);
        self
    }

    /// Sends commands to this file instead of opening the kernel's.
    #[must_use]
    pub fn ucma(mut self, ucma: Arc<dyn UcmaFile>) -> Self {
        self.ucma = Some(ucma);
        self
    }

    /// Looks up RDMA devices here instead of on this machine.
    #[must_use]
    pub fn devices(mut self, devices: Arc<dyn RdmaDevices>) -> Self {
        self.devices = Some(devices);
        self
    }

    /// How long [`open`](Self::open) waits for udev to create a missing device node, if the kernel
    /// has the device: 5 s by default. In a container that lacks the node it waits in vain. The
    /// time in which the kernel loads the module is not counted.
    #[must_use]
    pub fn device_node_timeout(mut self, timeout: Duration) -> Self {
        self.device_node_timeout = Some(timeout);
        self
    }

    /// Opens the channel.
    ///
    /// # Errors
    /// Those of [`EventChannel::open`].
    pub fn open(self) -> Result<EventChannel> {
        let timeout = self.device_node_timeout;
        let timeout = timeout.unwrap_or(Self::DEFAULT_DEVICE_NODE_TIMEOUT);
        let ucma = match self.ucma {
            Some(ucma) => ChannelFile::Other(ucma),
            None => ChannelFile::Kernel(KernelFile::open_within(timeout)?),
        };
        Ok(EventChannel {
            state: ChannelState::new(ucma, self.devices, self.address_abi),
        })
    }
}
