//! Receive requests that streams share.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rdmacm_rsocket::ProtocolError;
use rdmacm_verbs::{Completion, CompletionQueue, Result, SgList, SharedReceiveQueue, SrqOptions};

use super::failure::StreamFailure;
use super::queue_pair::StreamQueuePair;
use crate::data::{CompletionHandler, CqKind, OpenDevice};
use crate::event_loop::{EventLoop, Wakers, wake_all, wake_and_then};

/// How many completions are taken at once.
const MAX_COMPLETIONS: u32 = 16;

/// Receive requests of streams on one device, and the queue on which they complete.
///
/// A caller that polls for its own stream queues the messages of other streams, each in the
/// [`MessageQueue`] of its stream, and wakes those who wait for them.
#[derive(Debug)]
pub(super) struct SharedReceives {
    device: Arc<OpenDevice>,
    /// How many requests were asked for.
    size: u32,
    requests: SharedReceiveQueue,
    completions: CompletionQueue,
    /// By the numbers of their queue pairs.
    message_queues: Mutex<BTreeMap<u32, Arc<MessageQueue>>>,
    /// Of one caller at a time, so that messages keep their order.
    taken: Mutex<Vec<Completion>>,
    is_armed: AtomicBool,
}

/// What has arrived for one stream.
#[derive(Debug)]
pub(super) struct MessageQueue {
    stream: Weak<StreamQueuePair>,
    /// How many messages a peer may send that this side has not handled.
    max_messages: usize,
    messages: Mutex<VecDeque<Completion>>,
}

/// The shared receives of an event loop.
#[derive(Debug, Default)]
struct OpenReceives(Mutex<Vec<Weak<SharedReceives>>>);

impl MessageQueue {
    pub(super) fn has_messages(&self) -> bool {
        !self.messages.lock().is_empty()
    }

    fn take(&self) -> Option<Completion> {
        self.messages.lock().pop_front()
    }

    /// Adds a message, if there is room.
    fn add(&self, message: Completion) -> bool {
        let mut messages = self.messages.lock();
        let has_room = messages.len() < self.max_messages;
        if has_room {
            messages.push_back(message);
        }
        has_room
    }
}

impl SharedReceives {
    /// Those of so many requests on a device. They are there for as long as a stream uses them.
    pub(super) fn open(
        event_loop: &EventLoop,
        device: &Arc<OpenDevice>,
        size: u32,
    ) -> Result<Arc<Self>> {
        let open = event_loop.extensions().get_or_default::<OpenReceives>();
        let mut open = open.0.lock();
        open.retain(|one| one.strong_count() > 0);
        let mut all = open.iter().filter_map(Weak::upgrade);
        let known = all.find(|one| one.size == size && Arc::ptr_eq(&one.device, device));
        if let Some(known) = known {
            return Ok(known);
        }
        let created = Self::create(device, size)?;
        open.push(Arc::downgrade(&created));
        Ok(created)
    }

    fn create(device: &Arc<OpenDevice>, size: u32) -> Result<Arc<Self>> {
        let context = device.context();
        // Messages are immediate data.
        let options = SrqOptions {
            max_wr: size,
            max_sge: 0,
        };
        let requests = options.create(&context.create_protection_domain()?)?;
        for _ in 0..requests.capacity() {
            requests.post_receive(SgList::NONE)?;
        }
        let completions = CompletionQueue::options(requests.capacity())
            .channel(device.channel())
            .create(context)?;
        let this = Arc::new(Self {
            device: Arc::clone(device),
            size,
            requests,
            completions,
            message_queues: Mutex::default(),
            taken: Mutex::default(),
            is_armed: AtomicBool::new(false),
        });
        let handler: Weak<Self> = Arc::downgrade(&this);
        device.add_handler(this.completions.token(), handler, CqKind::Receives);
        Ok(this)
    }

    pub(super) fn requests(&self) -> &SharedReceiveQueue {
        &self.requests
    }

    pub(super) fn completions(&self) -> &CompletionQueue {
        &self.completions
    }

    /// From now on messages to a queue pair go to its stream.
    pub(super) fn add(
        &self,
        qp_number: u32,
        stream: Weak<StreamQueuePair>,
        max_messages: u32,
    ) -> Arc<MessageQueue> {
        // What another caller is dispatching may be of a queue pair that had the number.
        self.dispatch_all();
        let queue = Arc::new(MessageQueue {
            stream,
            max_messages: usize::try_from(max_messages).unwrap_or(usize::MAX),
            messages: Mutex::default(),
        });
        self.message_queues
            .lock()
            .insert(qp_number, Arc::clone(&queue));
        queue
    }

    /// Posts the requests that are missing. Those who dispatch messages may post some of them at
    /// the same time.
    fn refill(&self) {
        while self.requests.post_receive(SgList::NONE).is_ok() {}
    }

    /// The queue pair was destroyed. Another one may have its number by now.
    pub(super) fn remove(&self, qp_number: u32, queue: &Arc<MessageQueue>) {
        let mut message_queues = self.message_queues.lock();
        let known = message_queues.get(&qp_number);
        if known.is_some_and(|known| Arc::ptr_eq(known, queue)) {
            message_queues.remove(&qp_number);
        }
        drop(message_queues);
        // It has taken the requests with it that it had completed.
        self.refill();
    }

    /// The next message of a stream.
    pub(super) fn next(
        &self,
        queue: &Arc<MessageQueue>,
        wakers: &mut Wakers,
    ) -> Result<Option<Completion>> {
        if let Some(message) = queue.take() {
            return Ok(Some(message));
        }
        let dispatched = self.dispatch(Some(queue), wakers);
        match queue.take() {
            Some(message) => Ok(Some(message)),
            None => dispatched.map(|()| None),
        }
    }

    /// Requests a notification, which all streams receive. No lock of a stream is held.
    ///
    /// # Errors
    /// Those of [`CompletionQueue::arm`]. All streams are woken, to find out themselves.
    pub(super) fn arm(&self) -> Result<()> {
        if self.set_armed(true) {
            return Ok(());
        }
        let armed = self.completions.arm(false);
        if armed.is_err() {
            self.set_armed(false);
            self.wake_all();
        } else {
            // For those who have found it armed before it was.
            self.dispatch_all();
        }
        armed
    }

    /// Returns what it was before.
    fn set_armed(&self, is_armed: bool) -> bool {
        let was_armed = self.is_armed.swap(is_armed, Ordering::AcqRel);
        if was_armed != is_armed {
            self.device.count_armed(is_armed);
        }
        was_armed
    }

    /// Dispatches the messages that have arrived, about as many as there are requests. The
    /// caller looks into its own queue afterwards.
    fn dispatch(&self, own: Option<&Arc<MessageQueue>>, wakers: &mut Wakers) -> Result<()> {
        let mut taken = self.taken.lock();
        for _ in 0..=self.requests.capacity().div_ceil(MAX_COMPLETIONS) {
            let polled = self
                .completions
                .poll_many(&mut taken, MAX_COMPLETIONS as usize);
            for completion in taken.drain(..) {
                // If the device is gone, which polling reports, nothing is received any more.
                let _ = self.requests.post_receive(SgList::NONE);
                self.dispatch_one(completion, own, wakers);
            }
            if polled? == 0 {
                break;
            }
        }
        Ok(())
    }

    fn dispatch_one(
        &self,
        message: Completion,
        own: Option<&Arc<MessageQueue>>,
        wakers: &mut Wakers,
    ) {
        let queue = self
            .message_queues
            .lock()
            .get(&message.qp_number())
            .cloned();
        let Some(queue) = queue else {
            // Of a queue pair that was destroyed.
            return;
        };
        let has_room = queue.add(message);
        let is_own = own.is_some_and(|own| Arc::ptr_eq(own, &queue));
        if has_room && is_own {
            return;
        }
        let Some(stream) = queue.stream.upgrade() else {
            return;
        };
        if !has_room && !stream.has_failed() {
            let failure = StreamFailure::Protocol(ProtocolError::NoCredit);
            stream.fail(failure, wakers);
            // It takes no more requests.
            stream.move_to_error();
        }
        stream.status().wake_all(wakers);
    }

    fn dispatch_all(&self) {
        let mut wakers = Wakers::default();
        let dispatched = self.dispatch(None, &mut wakers);
        let wake_others = || {
            if dispatched.is_err() {
                self.wake_all();
            }
        };
        wake_and_then(|| wakers.wake(), wake_others);
    }

    fn wake_all(&self) {
        let message_queues: Vec<_> = self.message_queues.lock().values().cloned().collect();
        let streams = message_queues
            .iter()
            .filter_map(|queue| queue.stream.upgrade());
        // Those of each stream by themselves: collecting them compares each with the others.
        let of_each = streams.map(|stream| {
            let mut wakers = Wakers::default();
            stream.status().wake_all(&mut wakers);
            wakers
        });
        let wakers: Vec<_> = of_each.collect();
        wake_all(wakers.into_iter().flatten());
    }
}

impl CompletionHandler for SharedReceives {
    fn notified(&self, _: CqKind) {
        self.set_armed(false);
        // Others may wait that were not woken. An error has woken all.
        wake_and_then(|| self.dispatch_all(), || drop(self.arm()));
    }

    fn poll(&self) {
        self.dispatch_all();
    }
}

impl Drop for SharedReceives {
    fn drop(&mut self) {
        self.device.remove_handler(self.completions.token());
        self.set_armed(false);
    }
}
