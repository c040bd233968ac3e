//! How to open a channel.

use std::sync::Arc;

use super::EventChannel;
use crate::address_abi::AddressAbi;
use crate::channel_state::ChannelState;
use crate::error::Result;
use crate::rdma_devices::RdmaDevices;
use crate::ucma::{ChannelFile, KernelFile, UcmaFile};

/// How to open an [`EventChannel`].
#[derive(Debug, Default)]
pub struct ChannelOptions {
    ucma: Option<Arc<dyn UcmaFile>>,
    devices: Option<Arc<dyn RdmaDevices>>,
    address_abi: Option<AddressAbi>,
}

impl ChannelOptions {
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

    /// Opens the channel.
    ///
    /// # Errors
    /// Those of [`EventChannel::open`].
    pub fn open(self) -> Result<EventChannel> {
        let ucma = match self.ucma {
            Some(ucma) => ChannelFile::Other(ucma),
            None => ChannelFile::Kernel(KernelFile::open()?),
        };
        Ok(EventChannel {
            state: ChannelState::new(ucma, self.devices, self.address_abi),
        })
    }
}
