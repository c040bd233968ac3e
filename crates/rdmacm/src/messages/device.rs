//! Devices that are open for messages.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rdmacm_core::DeviceId;
use rdmacm_verbs::{CompletionChannel, Context, DeviceSource, Result, SystemDevices, Token};

use super::MessageQueuePair;
use crate::event_loop::{Drained, EventLoop, EventSource, MAX_EVENTS};

/// The devices that an event loop has open. A device is open for as long as a queue pair
/// uses it, so that an idle event loop does not keep one from being removed.
#[derive(Debug, Default)]
pub(crate) struct OpenDevices(Mutex<Vec<Weak<OpenDevice>>>);

impl OpenDevices {
    fn find(&self, is_it: impl Fn(&OpenDevice) -> bool) -> Option<Arc<OpenDevice>> {
        let devices = self.devices();
        let mut open = devices.iter().filter_map(Weak::upgrade);
        open.find(|device| is_it(device) && !device.is_gone())
    }

    fn add(&self, device: &Arc<OpenDevice>) {
        let mut devices = self.devices();
        devices.retain(|one| one.strong_count() > 0);
        devices.push(Arc::downgrade(device));
    }

    fn devices(&self) -> MutexGuard<'_, Vec<Weak<OpenDevice>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A device, and the completion channel of all queue pairs on it.
#[derive(Debug)]
pub(crate) struct OpenDevice {
    id: DeviceId,
    context: Context,
    channel: CompletionChannel,
    queue_pairs: Mutex<HashMap<Token, Weak<MessageQueuePair>>>,
}

/// Where an event loop opens devices.
#[derive(Debug)]
pub(crate) struct Devices(Arc<dyn DeviceSource>);

impl Devices {
    pub(crate) fn new(source: Arc<dyn DeviceSource>) -> Self {
        Self(source)
    }
}

impl Default for Devices {
    fn default() -> Self {
        Self(Arc::new(SystemDevices))
    }
}

/// Opens a device, with a context of its own.
///
/// # Errors
/// Those of [`DeviceSource::open`].
pub(crate) fn open_context(event_loop: &EventLoop, id: DeviceId) -> Result<Context> {
    event_loop.extensions().devices.0.open(id)
}

impl OpenDevice {
    /// The device that an id is attached to, in the event loop that watches it.
    ///
    /// # Errors
    /// Those of opening it, or of watching its completion channel.
    pub(crate) fn open(event_loop: &EventLoop, id: DeviceId) -> Result<Arc<Self>> {
        let devices = &event_loop.extensions().open_devices;
        if let Some(open) = devices.find(|device| device.id == id) {
            return Ok(open);
        }
        Self::add(event_loop, devices, id, open_context(event_loop, id)?)
    }

    /// The device of a context that is open already.
    ///
    /// # Errors
    /// Those of watching its completion channel.
    pub(crate) fn with_context(
        event_loop: &EventLoop,
        id: DeviceId,
        context: &Context,
    ) -> Result<Arc<Self>> {
        let devices = &event_loop.extensions().open_devices;
        if let Some(open) = devices.find(|device| device.context == *context) {
            return Ok(open);
        }
        Self::add(event_loop, devices, id, context.clone())
    }

    fn add(
        event_loop: &EventLoop,
        devices: &OpenDevices,
        id: DeviceId,
        context: Context,
    ) -> Result<Arc<Self>> {
        let device = Arc::new(Self {
            id,
            channel: context.create_completion_channel()?,
            context,
            queue_pairs: Mutex::default(),
        });
        device.watch_on(event_loop)?;
        devices.add(&device);
        Ok(device)
    }

    /// Has the event loop watch it, unless it does so already.
    pub(crate) fn watch_on(self: &Arc<Self>, event_loop: &EventLoop) -> Result<()> {
        if self.is_gone() {
            return Ok(());
        }
        let source: Arc<dyn EventSource> = self.clone();
        let watched = event_loop.watch(&source);
        watched.map_err(|errno| rdmacm_verbs::Error::Wait {
            errno: errno as i32,
        })
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    pub(super) fn channel(&self) -> &CompletionChannel {
        &self.channel
    }

    /// Closes it, under all queue pairs that use it.
    pub(crate) fn close(&self) {
        self.context.close();
    }

    /// Closes it if it was removed.
    pub(crate) fn check_removal(&self) {
        self.context.check_removal();
    }

    /// Whether it was removed, or its context closed.
    pub(crate) fn is_gone(&self) -> bool {
        self.context.is_gone()
    }

    pub(super) fn add_queue_pair(&self, token: Token, queue_pair: &Arc<MessageQueuePair>) {
        self.queue_pairs().insert(token, Arc::downgrade(queue_pair));
    }

    pub(super) fn remove_queue_pair(&self, token: Token) {
        self.queue_pairs().remove(&token);
    }

    fn notify(&self, token: Token) {
        let queue_pair = self.queue_pairs().get(&token).and_then(Weak::upgrade);
        if let Some(queue_pair) = queue_pair {
            queue_pair.notified();
        }
    }

    fn queue_pairs(&self) -> MutexGuard<'_, HashMap<Token, Weak<MessageQueuePair>>> {
        self.queue_pairs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSource for OpenDevice {
    /// Handles notifications of completion queues. Reading them also detects the device's
    /// removal.
    fn drain(&self) -> rdmacm_core::Result<Drained> {
        let take = || self.channel.take().ok().flatten();
        if drain_some(take, |token| self.notify(token)) {
            return Ok(Drained::More);
        }
        if !self.is_gone() {
            return Ok(Drained::Empty);
        }
        let queue_pairs: Vec<_> = self
            .queue_pairs()
            .values()
            .filter_map(Weak::upgrade)
            .collect();
        for queue_pair in queue_pairs {
            queue_pair.poll();
        }
        Ok(Drained::Closed)
    }
}

/// Whether there may be more.
fn drain_some<T>(mut take: impl FnMut() -> Option<T>, mut handle: impl FnMut(T)) -> bool {
    for _ in 0..MAX_EVENTS {
        match take() {
            Some(one) => handle(one),
            None => return false,
        }
    }
    true
}

impl AsFd for OpenDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As with completion queues that notify again as soon as they are polled.
    #[test]
    fn a_drain_ends_though_there_is_more() {
        let mut queues = 0..10_000;
        let mut notified = Vec::new();
        assert!(drain_some(|| queues.next(), |queue| notified.push(queue)));
        assert!(notified.into_iter().eq(0..MAX_EVENTS));
    }

    #[test]
    fn a_drain_ends_with_the_last_notification() {
        let mut queues = 0..3;
        let mut notified = Vec::new();
        assert!(!drain_some(|| queues.next(), |queue| notified.push(queue)));
        assert_eq!(notified, [0, 1, 2]);
    }
}
