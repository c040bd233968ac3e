//! Receive requests that streams share.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rdmacm_rsocket::ProtocolError;
use rdmacm_verbs::{
    Completion, CompletionQueue, Error, Result, SgList, SharedReceiveQueue, SrqOptions,
};

use super::failure::StreamFailure;
use super::queue_pair::StreamQueuePair;
use super::status::Wakers;
use crate::event_loop::EventLoop;
use crate::messages::{CompletionHandler, OpenDevice, Side};

/// How many completions are taken at once.
const MAX_COMPLETIONS: usize = 16;

/// Receive requests of streams on one device, and the queue on which they complete.
///
/// Whoever looks for messages of its own stream hands those of others to their [inboxes](Inbox),
/// and wakes those who wait for them.
#[derive(Debug)]
pub(super) struct SharedReceives {
    device: Arc<OpenDevice>,
    /// How many requests were asked for.
    size: u32,
    requests: SharedReceiveQueue,
    completions: CompletionQueue,
    /// By the numbers of their queue pairs.
    inboxes: Mutex<BTreeMap<u32, Arc<Inbox>>>,
    /// Of one caller at a time, so that messages keep their order.
    taken: Mutex<Vec<Completion>>,
    is_armed: AtomicBool,
}

/// What has arrived for one stream.
#[derive(Debug)]
pub(super) struct Inbox {
    stream: Weak<StreamQueuePair>,
    /// How many messages a peer may send that this side has not handled.
    max_messages: usize,
    messages: Mutex<VecDeque<Completion>>,
}

/// The shared receives of an event loop.
#[derive(Debug, Default)]
struct OpenReceives(Mutex<Vec<Weak<SharedReceives>>>);

impl Inbox {
    pub(super) fn has_messages(&self) -> bool {
        !lock(&self.messages).is_empty()
    }

    fn take(&self) -> Option<Completion> {
        lock(&self.messages).pop_front()
    }

    /// Adds a message, if there is room.
    fn add(&self, message: Completion) -> bool {
        let mut messages = lock(&self.messages);
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
        let mut open = lock(&open.0);
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
            inboxes: Mutex::default(),
            taken: Mutex::default(),
            is_armed: AtomicBool::new(false),
        });
        let handler: Weak<Self> = Arc::downgrade(&this);
        device.add_queue_pair(this.completions.token(), handler, Side::Receives);
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
    ) -> Arc<Inbox> {
        // What is there is of another queue pair that had the number.
        self.hand_out_all();
        let inbox = Arc::new(Inbox {
            stream,
            max_messages: usize::try_from(max_messages).unwrap_or(usize::MAX),
            messages: Mutex::default(),
        });
        lock(&self.inboxes).insert(qp_number, Arc::clone(&inbox));
        inbox
    }

    /// The queue pair was destroyed. Another one may have its number by now.
    pub(super) fn remove(&self, qp_number: u32, inbox: &Arc<Inbox>) {
        let mut inboxes = lock(&self.inboxes);
        let known = inboxes.get(&qp_number);
        if known.is_some_and(|known| Arc::ptr_eq(known, inbox)) {
            inboxes.remove(&qp_number);
        }
    }

    /// The next message of a stream.
    pub(super) fn next(
        &self,
        inbox: &Arc<Inbox>,
        wakers: &mut Wakers,
    ) -> Result<Option<Completion>> {
        if let Some(message) = inbox.take() {
            return Ok(Some(message));
        }
        self.hand_out(Some(inbox), wakers)?;
        Ok(inbox.take())
    }

    /// Requests a notification, which all streams receive.
    pub(super) fn arm(&self) -> Result<()> {
        if self.set_armed(true) {
            return Ok(());
        }
        self.completions.arm(false)
    }

    /// Returns what it was before.
    fn set_armed(&self, is_armed: bool) -> bool {
        let was_armed = self.is_armed.swap(is_armed, Ordering::AcqRel);
        if was_armed != is_armed {
            self.device.count_armed(is_armed);
        }
        was_armed
    }

    /// Hands out the messages that have arrived, at most as many as there are requests. The
    /// caller looks into its own inbox afterwards.
    fn hand_out(&self, own: Option<&Arc<Inbox>>, wakers: &mut Wakers) -> Result<()> {
        let mut taken = lock(&self.taken);
        for _ in 0..self.requests.capacity() {
            let polled = self.completions.poll_many(&mut taken, MAX_COMPLETIONS);
            for completion in taken.drain(..) {
                // If the device is gone, which polling reports, nothing is received any more.
                let _ = self.requests.post_receive(SgList::NONE);
                self.hand_over(completion, own, wakers);
            }
            if polled? < MAX_COMPLETIONS {
                break;
            }
        }
        Ok(())
    }

    fn hand_over(&self, message: Completion, own: Option<&Arc<Inbox>>, wakers: &mut Wakers) {
        let inbox = lock(&self.inboxes).get(&message.queue_pair()).cloned();
        let Some(inbox) = inbox else {
            // Of a queue pair that was destroyed.
            return;
        };
        let has_room = inbox.add(message);
        let is_own = own.is_some_and(|own| Arc::ptr_eq(own, &inbox));
        if has_room && is_own {
            return;
        }
        if let Some(stream) = inbox.stream.upgrade() {
            if !has_room {
                let failure = StreamFailure::Protocol(ProtocolError::NoCredit);
                stream.fail(failure, wakers);
            }
            stream.status().wake_all(wakers);
        }
    }

    fn hand_out_all(&self) {
        let mut wakers = Wakers::default();
        if let Err(error) = self.hand_out(None, &mut wakers) {
            self.fail_all(&error, &mut wakers);
        }
        wakers.wake();
    }

    fn fail_all(&self, error: &Error, wakers: &mut Wakers) {
        let inboxes: Vec<_> = lock(&self.inboxes).values().cloned().collect();
        for stream in inboxes.iter().filter_map(|inbox| inbox.stream.upgrade()) {
            stream.fail(StreamFailure::device(error.clone()), wakers);
        }
    }
}

impl CompletionHandler for SharedReceives {
    fn notified(&self, _: Side) {
        self.set_armed(false);
        self.hand_out_all();
        // Others may wait that were not woken.
        if let Err(error) = self.arm() {
            let mut wakers = Wakers::default();
            self.fail_all(&error, &mut wakers);
            return wakers.wake();
        }
        self.hand_out_all();
    }

    fn poll(&self) {
        self.hand_out_all();
    }
}

impl Drop for SharedReceives {
    fn drop(&mut self) {
        self.device.remove_queue_pair(self.completions.token());
        self.set_armed(false);
    }
}

/// Each statement leaves what is locked consistent, so it is after a panic as well.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
