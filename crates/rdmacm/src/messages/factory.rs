//! Creating queue pairs that carry messages.

use std::io;
use std::sync::{Arc, Weak};

use rdmacm_core::{IdHandle, QpType};

use super::device::OpenDevice;
use super::options::MessageOptions;
use super::queue_pair::MessageQueuePair;
use crate::event_loop::EventLoop;
use crate::queue_pair_factory::QueuePairFactory;

/// Creates queue pairs that carry messages, with all receive requests posted that the
/// peer's first messages need.
#[derive(Debug)]
pub(crate) struct MessageQueuePairFactory {
    event_loop: Weak<EventLoop>,
    options: MessageOptions,
}

impl MessageQueuePairFactory {
    pub(crate) fn new(event_loop: &Arc<EventLoop>, options: MessageOptions) -> Self {
        Self {
            event_loop: Arc::downgrade(event_loop),
            options,
        }
    }
}

impl QueuePairFactory for MessageQueuePairFactory {
    type QueuePair = Arc<MessageQueuePair>;

    fn create(&self, id: &IdHandle) -> io::Result<Arc<MessageQueuePair>> {
        self.options.check()?;
        let device = id.addresses()?.device.ok_or(io::ErrorKind::NotFound)?;
        let event_loop = self.event_loop.upgrade();
        let event_loop = event_loop.ok_or(io::ErrorKind::NotConnected)?;
        let device = match &self.options.protection_domain {
            None => OpenDevice::open(&event_loop, device)?,
            Some(domain) => OpenDevice::with_context(&event_loop, device, domain.context())?,
        };
        let (options, now) = (self.options.clone(), event_loop.now());
        let queue_pair = MessageQueuePair::new(&device, QpType::RC, options, now)?;
        id.with_queue_pair(queue_pair.as_ref()).init()?;
        queue_pair.post_receives()?;
        Ok(queue_pair)
    }
}
