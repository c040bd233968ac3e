//! Devices that are open for their queue pairs.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use nix::errno::Errno;
use parking_lot::{Mutex, MutexGuard};
use rdmacm_core::{DeviceId, IdHandle};
use rdmacm_verbs::{CompletionChannel, Context, DeviceSource, Result, SystemDeviceSource, Token};

use crate::event_loop::{Drained, EventLoop, EventSource, MAX_EVENTS};

const OTHER_DEVICE: &str = "the queue pair's objects are of a device that does not lead there";

/// The devices that an event loop has open. A device is open for as long as a queue pair
/// uses it, so that an idle event loop does not keep one from being removed.
#[derive(Debug, Default)]
struct OpenDevices(Mutex<Vec<Weak<OpenDevice>>>);

impl OpenDevices {
    fn find(&self, is_it: impl Fn(&OpenDevice) -> bool) -> Option<Arc<OpenDevice>> {
        let devices = self.devices();
        let mut open = devices.iter().filter_map(Weak::upgrade);
        open.find(|device| is_it(device) && !device.is_closed())
    }

    fn add(&self, device: &Arc<OpenDevice>) {
        let mut devices = self.devices();
        devices.retain(|one| one.strong_count() > 0);
        devices.push(Arc::downgrade(device));
    }

    fn devices(&self) -> MutexGuard<'_, Vec<Weak<OpenDevice>>> {
        self.0.lock()
    }
}

/// Which of a queue pair's completion queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CqKind {
    Sends,
    Receives,
}

/// Who handles completion queues that notify on the channel of their device.
pub(crate) trait CompletionHandler: fmt::Debug + Send + Sync {
    /// A completion queue has notified.
    fn notified(&self, kind: CqKind);

    /// Handles all completions that there are.
    fn poll(&self);
}

/// A completion queue's handler.
type Handler = (Weak<dyn CompletionHandler>, CqKind);

/// A device, and the completion channel of all queue pairs on it.
#[derive(Debug)]
pub(crate) struct OpenDevice {
    id: DeviceId,
    context: Context,
    channel: CompletionChannel,
    /// By their completion queues.
    handlers: Mutex<BTreeMap<Token, Handler>>,
    /// How many completion queues are armed.
    armed: AtomicUsize,
    /// The event loops that watch it.
    watchers: Mutex<Vec<Weak<EventLoop>>>,
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
        Self(Arc::new(SystemDeviceSource))
    }
}

/// Opens a device, with a context of its own.
///
/// # Errors
/// Those of [`DeviceSource::open`].
pub(crate) fn open_context(event_loop: &EventLoop, id: DeviceId) -> Result<Context> {
    event_loop
        .extensions()
        .get_or_default::<Devices>()
        .0
        .open(id)
}

/// Refuses a context of another device than the id's. Also if the kernel names no device: it would
/// accept a queue pair of any.
pub(crate) fn check_device(id: &IdHandle, context: &Context) -> io::Result<()> {
    match id.rdma_device()? {
        Some(device) if device.name == context.device_name() => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, OTHER_DEVICE)),
    }
}

impl OpenDevice {
    /// The device that an id is attached to, in the event loop that watches it.
    ///
    /// # Errors
    /// Those of opening it, or of watching its completion channel.
    pub(crate) fn open(event_loop: &Arc<EventLoop>, id: DeviceId) -> Result<Arc<Self>> {
        let devices = event_loop.extensions().get_or_default::<OpenDevices>();
        if let Some(open) = devices.find(|device| device.id == id) {
            return Ok(open);
        }
        Self::add(event_loop, &devices, id, open_context(event_loop, id)?)
    }

    /// The device of a context that is open already, to which the id is attached as well.
    ///
    /// # Errors
    /// `InvalidInput` if it is another device than the id's; those of watching its completion
    /// channel.
    pub(crate) fn with_context(
        event_loop: &Arc<EventLoop>,
        id: &IdHandle,
        device: DeviceId,
        context: &Context,
    ) -> io::Result<Arc<Self>> {
        let devices = event_loop.extensions().get_or_default::<OpenDevices>();
        let open = devices.find(|open| open.context == *context);
        if open.as_ref().is_none_or(|open| open.id != device) {
            check_device(id, context)?;
        }
        match open {
            Some(open) => Ok(open),
            None => Ok(Self::add(event_loop, &devices, device, context.clone())?),
        }
    }

    fn add(
        event_loop: &Arc<EventLoop>,
        devices: &OpenDevices,
        id: DeviceId,
        context: Context,
    ) -> Result<Arc<Self>> {
        let device = Arc::new(Self {
            id,
            channel: context.create_completion_channel()?,
            context,
            handlers: Mutex::default(),
            armed: AtomicUsize::new(0),
            watchers: Mutex::default(),
        });
        device.watch_on(event_loop)?;
        devices.add(&device);
        Ok(device)
    }

    /// Has the event loop watch it, unless it does so already.
    pub(crate) fn watch_on(self: &Arc<Self>, event_loop: &Arc<EventLoop>) -> Result<()> {
        if self.is_closed() {
            return Ok(());
        }
        let source: Arc<dyn EventSource> = self.clone();
        let watched = event_loop.watch(&source);
        watched.map_err(|errno| rdmacm_verbs::Error::Wait {
            errno: errno as i32,
        })?;
        let mut watchers = self.watchers();
        watchers.retain(|one| one.strong_count() > 0 && one.as_ptr() != Arc::as_ptr(event_loop));
        watchers.push(Arc::downgrade(event_loop));
        Ok(())
    }

    fn watchers(&self) -> MutexGuard<'_, Vec<Weak<EventLoop>>> {
        self.watchers.lock()
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    pub(crate) fn channel(&self) -> &CompletionChannel {
        &self.channel
    }

    /// Whether it was removed, or its context closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.context.is_closed()
    }

    pub(crate) fn add_handler(
        &self,
        token: Token,
        handler: Weak<dyn CompletionHandler>,
        kind: CqKind,
    ) {
        self.handlers().insert(token, (handler, kind));
    }

    pub(crate) fn remove_handler(&self, token: Token) {
        self.handlers().remove(&token);
    }

    /// A completion queue was armed, or has notified.
    pub(crate) fn count_armed(&self, is_armed: bool) {
        if is_armed {
            self.armed.fetch_add(1, Ordering::Relaxed);
        } else {
            self.armed.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Returns whether anybody handles it.
    fn notify(&self, token: Token) -> bool {
        let handlers = self.handlers();
        let found = handlers.get(&token);
        let found = found.and_then(|(one, kind)| Some((one.upgrade()?, *kind)));
        drop(handlers);
        let Some((handler, kind)) = found else {
            return false;
        };
        handler.notified(kind);
        true
    }

    fn handlers(&self) -> MutexGuard<'_, BTreeMap<Token, Handler>> {
        self.handlers.lock()
    }
}

impl Drop for OpenDevice {
    fn drop(&mut self) {
        // Without the lock, which a thread of a forked child's parent may have held.
        let watchers = std::mem::take(self.watchers.get_mut());
        for event_loop in watchers.iter().filter_map(Weak::upgrade) {
            event_loop.unwatch(self);
        }
    }
}

impl EventSource for OpenDevice {
    fn readiness(&self) -> nix::Result<BorrowedFd<'_>> {
        readiness(&self.channel)
    }

    /// Handles notifications of completion queues. Reading them also detects the device's
    /// removal.
    fn drain(&self) -> rdmacm_core::Result<Drained> {
        let take = || self.channel.try_next().ok().flatten();
        // A queue notifies once each time it is armed: mostly there is no more to read.
        let limit = self.armed.load(Ordering::Relaxed).clamp(1, MAX_EVENTS);
        let notifications = drain_some(limit, take, |token| self.notify(token));
        if !self.is_closed() {
            return Ok(Drained::after(notifications));
        }
        let handlers: Vec<_> = self
            .handlers()
            .values()
            .filter_map(|(handler, _)| handler.upgrade())
            .collect();
        for handler in handlers {
            handler.poll();
        }
        Ok(Drained::Closed)
    }

    fn is_in_child(&self) -> bool {
        self.context.is_in_child()
    }
}

/// The descriptor of a completion channel, for an event loop.
pub(crate) fn readiness(channel: &CompletionChannel) -> nix::Result<BorrowedFd<'_>> {
    let readiness = channel.readiness();
    readiness.map_err(|error| error.raw_os_error().map_or(Errno::ENODEV, Errno::from_raw))
}

/// Until so many were handled, or [`MAX_EVENTS`] were taken. Returns how many were taken: of a queue
/// that is being destroyed, nobody handles the notification.
fn drain_some<T>(
    limit: usize,
    mut take: impl FnMut() -> Option<T>,
    mut handle: impl FnMut(T) -> bool,
) -> usize {
    let (mut taken, mut handled) = (0, 0);
    while handled < limit && taken < MAX_EVENTS {
        let Some(one) = take() else {
            break;
        };
        taken += 1;
        handled += usize::from(handle(one));
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As with completion queues that notify again as soon as they are polled.
    #[test]
    fn a_drain_ends_though_there_is_more() {
        let mut queues = 0..10_000;
        let mut notified = Vec::new();
        let mut notify = |queue| {
            notified.push(queue);
            true
        };
        assert_eq!(drain_some(5, || queues.next(), &mut notify), 5);
        assert_eq!(
            drain_some(usize::MAX, || queues.next(), &mut notify),
            MAX_EVENTS
        );
        assert!(notified.into_iter().eq(0..5 + MAX_EVENTS));
    }

    #[test]
    fn a_drain_ends_with_the_last_notification() {
        let mut queues = 0..3;
        let mut notified = Vec::new();
        let notify = |queue| {
            notified.push(queue);
            true
        };
        assert_eq!(drain_some(32, || queues.next(), notify), 3);
        assert_eq!(notified, [0, 1, 2]);
    }

    #[test]
    fn notifications_of_destroyed_queues_leave_room_for_others() {
        let mut queues = 0..10;
        let exists = |queue| queue >= 3;
        assert_eq!(drain_some(2, || queues.next(), exists), 5);
        let mut queues = 0..10_000;
        assert_eq!(drain_some(2, || queues.next(), |_| false), MAX_EVENTS);
    }
}
