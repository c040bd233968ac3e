//! Creating queue pairs that carry messages.

use std::io;
use std::sync::{Arc, Weak};

use rdmacm_core::{DeviceId, IdHandle, QpType};

use super::options::MessageOptions;
use super::queue_pair::MessageQueuePair;
use crate::data::OpenDevice;
use crate::event_loop::EventLoop;
use crate::queue_pair_factory::QueuePairFactory;

/// Creates queue pairs that carry messages. The handshake moves them to INIT, which posts all
/// receive requests that the peer's first messages need.
#[derive(Debug)]
pub(crate) struct MessageQueuePairFactory {
    event_loop: Weak<EventLoop>,
    options: MessageOptions,
    device: Option<DeviceId>,
}

impl MessageQueuePairFactory {
    pub(crate) fn new(event_loop: &Arc<EventLoop>, options: MessageOptions) -> Self {
        Self {
            event_loop: Arc::downgrade(event_loop),
            options,
            device: None,
        }
    }

    /// With the device of the ids, if it is known.
    pub(crate) fn on_device(self, device: Option<DeviceId>) -> Self {
        Self { device, ..self }
    }
}

impl QueuePairFactory for MessageQueuePairFactory {
    type QueuePair = Arc<MessageQueuePair>;

    fn create(&self, id: &IdHandle) -> io::Result<Arc<MessageQueuePair>> {
        self.options.check()?;
        let device = match self.device {
            Some(device) => device,
            None => id.addresses()?.device.ok_or(io::ErrorKind::NotFound)?,
        };
        let event_loop = self.event_loop.upgrade();
        let event_loop = event_loop.ok_or(io::ErrorKind::NotConnected)?;
        let device = match &self.options.protection_domain {
            None => OpenDevice::open(&event_loop, device)?,
            Some(domain) => OpenDevice::with_context(&event_loop, id, device, domain.context())?,
        };
        let (options, now) = (self.options.clone(), event_loop.now());
        Ok(MessageQueuePair::new(&device, QpType::RC, options, now)?)
    }
}
