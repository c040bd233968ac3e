//! The verbs of a device: queue pairs that carry messages.
//!
//! The device is one of the driver rxe or siw. Its queues are in a memory file that the program
//! maps, as it maps the kernel's, and that the simulation reads and writes. Registered
//! memory is the memory of this process, which is read and written through
//! `/proc/self/mem`.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;

use nix::errno::Errno;
use rdmacm_abi::QpState;
use rdmacm_abi::uverbs::{AsyncEventKind, WorkCompletion};

use crate::sim_state::SimState;

mod channel;
mod command;
mod completion_queue;
mod devices;
mod event_stream;
mod file;
mod format;
mod memory;
mod message;
mod objects;
mod queue_pair;
mod request;
mod requester;
mod responder;
mod ring;
mod shared_receive_queue;
mod slots;
mod state_table;
mod transition;
mod work_queue;

pub(crate) use format::Format;
pub(crate) use message::{DataMessage, receive};
pub use objects::VerbsObjects;
pub(crate) use queue_pair::QpKey;
pub(crate) use requester::{receiver_ready, time_out};
pub(crate) use transition::{connect, fail};

use channel::Channel;
use completion_queue::CompletionQueue;
use event_stream::{EventStream, StreamId};
use format::ONLY_PORT;
use memory::Region;
use queue_pair::QueuePair;
use ring::RingMemory;
use shared_receive_queue::SharedReceiveQueue;

/// The objects of a device, of all its open contexts. Handles are unique on the device.
#[derive(Debug, Default)]
pub(crate) struct Verbs {
    /// That of an InfiniBand adapter is not used.
    pub(crate) format: Format,
    contexts: BTreeMap<u64, OpenContext>,
    /// The contexts of protection domains.
    domains: BTreeMap<u32, u64>,
    regions: BTreeMap<u32, Region>,
    channels: BTreeMap<StreamId, Channel>,
    /// Whether a stream has events that are not sent.
    has_unsent: bool,
    completion_queues: BTreeMap<u32, CompletionQueue>,
    shared_receive_queues: BTreeMap<u32, SharedReceiveQueue>,
    /// By their numbers, which are their handles too.
    queue_pairs: BTreeMap<u32, QueuePair>,
    last_handle: u32,
    /// The last number of a queue pair of siw.
    last_number: u32,
}

/// An open context.
#[derive(Debug)]
struct OpenContext {
    rings: RingMemory,
    /// That of this process.
    memory: Arc<File>,
    /// Where its asynchronous events are reported, once the program has asked for them.
    async_events: Option<EventStream>,
}

impl Verbs {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            ..Self::default()
        }
    }

    /// Queue pair numbers below are reserved (`RXE_MIN_QP_INDEX`).
    const FIRST_HANDLE: u32 = 16;
    /// Queue pair numbers have 24 bits.
    const LAST_HANDLE: u32 = 0xff_ffff;

    fn next_handle(&mut self) -> Result<u32, Errno> {
        let next = self.last_handle.max(Self::FIRST_HANDLE) + 1;
        if next > Self::LAST_HANDLE {
            return Err(Errno::ENOMEM);
        }
        self.last_handle = next;
        Ok(next)
    }

    /// The queue pairs of a context.
    fn queue_pairs_of(&self, context: u64) -> Vec<u32> {
        let of = |(number, one): (&u32, &QueuePair)| (one.context == context).then_some(*number);
        self.queue_pairs.iter().filter_map(of).collect()
    }

    /// siw numbers its queue pairs from 1. No number is used twice, so that nothing that is
    /// late finds another queue pair.
    fn next_siw_number(&mut self) -> Result<u32, Errno> {
        let next = self.last_number + 1;
        if next > Self::LAST_HANDLE {
            return Err(Errno::ENOMEM);
        }
        self.last_number = next;
        Ok(next)
    }

    /// Destroys all objects of a context.
    fn close(&mut self, context: u64) {
        self.queue_pairs.retain(|_, one| one.context != context);
        self.shared_receive_queues
            .retain(|_, one| one.context != context);
        self.completion_queues
            .retain(|_, one| one.context != context);
        self.channels.retain(|_, one| one.context != context);
        self.regions.retain(|_, one| one.context != context);
        self.domains.retain(|_, of| *of != context);
        self.contexts.remove(&context);
    }

    /// Reports to all contexts whether the port has a link (`ib_netdevice_event`).
    pub(crate) fn report_link(&mut self, is_up: bool) {
        let kind = if is_up {
            AsyncEventKind::PORT_ACTIVE
        } else {
            AsyncEventKind::PORT_ERR
        };
        for context in self.contexts.values_mut() {
            if let Some(events) = &mut context.async_events {
                self.has_unsent |= !events.report_async(kind, ONLY_PORT.into());
            }
        }
    }

    /// Destroys everything, and ends the event streams with an error, as the kernel
    /// does when the device is removed.
    pub(crate) fn remove(&mut self) {
        for context in self.contexts.values_mut() {
            if let Some(events) = &mut context.async_events {
                events.report_async(AsyncEventKind::DEVICE_FATAL, 0);
            }
        }
        *self = Self {
            format: self.format,
            last_handle: self.last_handle,
            last_number: self.last_number,
            ..Self::default()
        };
    }

    /// Adds a completion to a queue, and reports it if the queue is armed for it.
    fn complete(&mut self, queue: u32, completion: &WorkCompletion, is_solicited: bool) {
        let Some(queue) = self.completion_queues.get_mut(&queue) else {
            return;
        };
        if !queue.push(completion) {
            let (context, element) = (queue.context, queue.user_handle);
            return self.report(context, AsyncEventKind::CQ_ERR, element);
        }
        if !queue.take_armed(is_solicited) {
            return;
        }
        let element = queue.user_handle;
        let channel = queue.channel.and_then(|id| self.channels.get_mut(&id));
        if let Some(channel) = channel {
            self.has_unsent |= !channel.events.report_completion(element);
        }
    }

    /// Writes the events that there was no room for, as far as there is by now.
    pub(crate) fn send_unsent(&mut self) {
        if !self.has_unsent {
            return;
        }
        let contexts = self.contexts.values_mut();
        let asynchronous = contexts.filter_map(|context| context.async_events.as_mut());
        let channels = self
            .channels
            .values_mut()
            .map(|channel| &mut channel.events);
        self.has_unsent = false;
        for stream in asynchronous.chain(channels) {
            self.has_unsent |= !stream.send_unsent();
        }
    }

    fn report(&mut self, context: u64, kind: AsyncEventKind, element: u64) {
        let context = self.contexts.get_mut(&context);
        if let Some(events) = context.and_then(|context| context.async_events.as_mut()) {
            self.has_unsent |= !events.report_async(kind, element);
        }
    }
}

impl SimState {
    /// Writes the events of all devices that there was no room for, as far as there is by now.
    pub(crate) fn send_unsent(&mut self) {
        let devices = self.hosts.iter_mut().flat_map(|host| &mut host.devices);
        devices.for_each(|device| device.verbs.send_unsent());
    }

    pub(crate) fn verbs(&mut self, host: usize, device: usize) -> Option<&mut Verbs> {
        let device = self.hosts.get_mut(host)?.devices.get_mut(device)?;
        (!device.is_removed).then_some(&mut device.verbs)
    }

    /// Whether there is a queue pair that iWARP knows.
    pub(crate) fn has_siw_queue_pair(&mut self, key: QpKey) -> bool {
        let queue_pair = self.queue_pair(key);
        queue_pair.is_some_and(|one| one.format == Format::Siw)
    }

    /// Whether a queue pair of iWARP has not been connected.
    pub(crate) fn is_unconnected(&mut self, key: QpKey) -> bool {
        let queue_pair = self.queue_pair(key);
        queue_pair.is_some_and(|one| one.format == Format::Siw && one.state == QpState::INIT)
    }

    fn verbs_of(&mut self, key: QpKey) -> Option<&mut Verbs> {
        self.verbs(key.host, key.device)
    }

    fn queue_pair(&mut self, key: QpKey) -> Option<&mut QueuePair> {
        self.verbs_of(key)?.queue_pairs.get_mut(&key.number)
    }
}
