//! A queue pair that carries a byte stream, and its memory.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use parking_lot::Mutex;
use rdmacm_core::{
    AccessFlags, DepthLimits, IdHandle, QpAttr, QpAttrMask, QpState, QpType, QueuePair as _,
    Transport as Fabric,
};
use rdmacm_rsocket::{
    ByteOrder, Control, Handshake, How, MAP_ENTRY_SIZE, Message, Receiver, Sender, Transport,
};
use rdmacm_verbs::{CompletionQueue, QpCaps, QueuePair, Result, SgList, Token};

use super::failure::StreamFailure;
use super::options::{StreamOptions, UPDATE_REQUESTS};
use super::receive_queue::{ReceiveQueue, SharedReceivesRegistration};
use super::receive_state::{PeerMemory, ReceiveState};
use super::send_state::SendState;
use super::shared_receives::SharedReceives;
use super::shared_status::{SharedStatus, StatusGuard};
use super::status::{Status, StreamInterest};
use crate::busy_polling::BusyPolling;
use crate::data::{CompletionHandler, CqKind, KeepAlive, OpenDevice, limit_attr_retries};
use crate::event_loop::{EventLoop, Wakers};

mod completions;
mod mapped_memory;
mod reads;
mod send_buffers;
mod waiters;
mod writes;

/// Bytes of inline data that each stream needs, for a map entry, an announcement or a message.
const MIN_INLINE: u32 = 24;
const _: () = assert!(MIN_INLINE as usize == MAP_ENTRY_SIZE);

/// When a peer sends again that has found all shared receive requests in use: after 0.64 ms.
/// Source: IBTA Vol 1 §9.7.5.2.8.
const SHARED_RNR_TIMER: u8 = 12;

/// Bytes of a message on iWARP.
const MESSAGE_SIZE: usize = 4;

/// A queue pair that carries a byte stream.
///
/// A caller that reads, writes or waits polls the completion queues, handles what has
/// completed for both directions, and wakes those whom it concerns.
#[derive(Debug)]
pub(crate) struct StreamQueuePair {
    queue_pair: QueuePair,
    sends: CompletionQueue,
    // Dropped after the queue pair.
    receives: ReceiveQueue,
    device: Arc<OpenDevice>,
    options: StreamOptions,
    transport: Transport,
    has_posted_receives: AtomicBool,
    peer_memory: PeerMemory,
    receive: Mutex<ReceiveState>,
    send: Mutex<SendState>,
    status: SharedStatus,
    pub(super) busy_reads: BusyPolling,
    pub(super) busy_writes: BusyPolling,
    are_sends_armed: AtomicBool,
    are_receives_armed: AtomicBool,
}

impl StreamQueuePair {
    /// Creates a queue pair on the device that the id is attached to.
    pub(super) fn create(
        event_loop: &Arc<EventLoop>,
        id: &IdHandle,
        options: &StreamOptions,
    ) -> io::Result<Arc<Self>> {
        options.check()?;
        let device = id.addresses()?.device.ok_or(io::ErrorKind::NotFound)?;
        let device = OpenDevice::open(event_loop, device)?;
        let shared = match options.shared_receives {
            Some(requests) if device.context().transport() != Fabric::IWarp => {
                Some(SharedReceives::open(event_loop, &device, requests)?)
            }
            _ => None,
        };
        Ok(Self::new(
            &device,
            shared.as_ref(),
            options.clone(),
            event_loop.now(),
        )?)
    }

    fn new(
        device: &Arc<OpenDevice>,
        shared: Option<&Arc<SharedReceives>>,
        options: StreamOptions,
        now: Instant,
    ) -> Result<Arc<Self>> {
        let context = device.context();
        let create_queue = |entries| {
            let queue = CompletionQueue::options(entries).channel(device.channel());
            queue.create(context)
        };
        let sends = create_queue(options.send_requests())?;
        let domain = context.create_protection_domain()?;
        let memory = PeerMemory::expose(&domain, &options)?;
        let send_memory = domain.expose(options.send_buffer as usize, AccessFlags::LOCAL_WRITE)?;
        let queue_pair = QueuePair::options(QpType::RC)
            .caps(QpCaps {
                max_send_wr: options.send_requests(),
                max_recv_wr: options.receive_requests(),
                max_inline_data: options.inline.max(MIN_INLINE),
                ..QpCaps::default()
            })
            .protection_domain(&domain)
            .send_cq(&sends);
        let (queue_pair, receives) = if let Some(shared) = shared {
            let queue_pair = queue_pair.shared_receive_queue(shared.requests());
            let queue_pair = queue_pair.recv_cq(shared.completions());
            let queue_pair = queue_pair.create(context)?;
            let shared = SharedReceivesRegistration {
                receives: Arc::clone(shared),
                qp_number: queue_pair.number(),
                queue: OnceLock::new(),
            };
            (queue_pair, ReceiveQueue::Shared(shared))
        } else {
            let receives = create_queue(options.receive_requests())?;
            let queue_pair = queue_pair.recv_cq(&receives).create(context)?;
            (queue_pair, ReceiveQueue::Own(receives))
        };
        let transport = match queue_pair.transport() {
            Fabric::IWarp => Transport::Send,
            _ => Transport::Immediate,
        };
        let window = options.window();
        let bytes = Receiver::new(transport, memory.ring(), window, options.map_entries);
        let sends_at_once = options.sends as usize;
        let max_inline = options.inline as usize;
        let keep_alive = KeepAlive::new(options.keep_alive, now);
        let this = Arc::new(Self {
            queue_pair,
            sends,
            receives,
            device: Arc::clone(device),
            options,
            transport,
            has_posted_receives: AtomicBool::new(false),
            receive: Mutex::new(ReceiveState::new(bytes, memory.clone())),
            peer_memory: memory,
            send: Mutex::new(SendState::new(
                transport,
                send_memory,
                sends_at_once,
                UPDATE_REQUESTS,
                max_inline,
            )),
            status: SharedStatus::new(Status::new(keep_alive)),
            busy_reads: BusyPolling::default(),
            busy_writes: BusyPolling::default(),
            are_sends_armed: AtomicBool::new(false),
            are_receives_armed: AtomicBool::new(false),
        });
        for (kind, token) in this.completion_queues() {
            let handler: Weak<Self> = Arc::downgrade(&this);
            device.add_handler(token, handler, kind);
        }
        if let ReceiveQueue::Shared(shared) = &this.receives {
            let stream = Arc::downgrade(&this);
            let requests = this.options.receive_requests();
            let queue = shared.receives.add(shared.qp_number, stream, requests);
            let _ = shared.queue.set(queue);
        }
        Ok(this)
    }

    /// Those of the stream's own, by their tokens.
    fn completion_queues(&self) -> impl Iterator<Item = (CqKind, Token)> + use<> {
        let receives = match &self.receives {
            ReceiveQueue::Own(receives) => Some((CqKind::Receives, receives.token())),
            ReceiveQueue::Shared(_) => None,
        };
        [(CqKind::Sends, self.sends.token())]
            .into_iter()
            .chain(receives)
    }

    pub(super) fn queue_pair(&self) -> &QueuePair {
        &self.queue_pair
    }

    pub(super) fn device(&self) -> &Arc<OpenDevice> {
        &self.device
    }

    pub(super) fn options(&self) -> &StreamOptions {
        &self.options
    }

    pub(super) fn is_iwarp(&self) -> bool {
        self.transport == Transport::Send
    }

    /// This side's handshake.
    pub(super) fn handshake(&self) -> Handshake {
        let receive = self.receive.lock();
        Handshake {
            byte_order: ByteOrder::NATIVE,
            credits: self.options.window(),
            map_entries: self.options.map_entries,
            table: receive.table(),
            announcement: receive.receiver.announcement(),
        }
    }

    /// The peer's handshake has arrived, before anything else of it was handled.
    pub(super) fn connected(&self, peer: &Handshake) {
        self.receive.lock().receiver.connected(peer);
        let sender = Sender::new(self.transport, peer, self.options.sends);
        self.send.lock().sender = Some(sender);
    }

    /// The connection is established. On iWARP the accepting side waits until the connecting
    /// side has sent something.
    pub(super) fn established(&self, has_connected: bool) {
        self.send.lock().may_send |= has_connected || !self.is_iwarp();
        self.poll();
    }

    /// Closes one direction or both, and tells the peer.
    pub(super) fn shut_down(&self, how: How) {
        let mut wakers = Wakers::default();
        let mut send = self.send.lock();
        let mut status = self.status();
        let control = status.shutdown.close(how);
        status.wake_all(&mut wakers);
        drop(status);
        if let Some(control) = control {
            self.send_control(&mut send, control, &mut wakers);
        }
        drop(send);
        wakers.wake();
    }

    /// On iWARP the end of one direction waits until this side may send. That of both does not
    /// wait: it ends the connection.
    fn send_control(&self, send: &mut SendState, control: Control, wakers: &mut Wakers) {
        if self.has_failed() {
            return;
        }
        send.is_shutdown_due = control == Control::Shutdown && !send.may_send;
        if send.is_shutdown_due {
            return;
        }
        let posted = send.control(&self.queue_pair, Message::Control(control));
        if let Err(failure) = posted {
            self.fail(failure, wakers);
        }
    }

    /// Whether all that was posted has completed.
    pub(super) fn is_flushed(&self) -> bool {
        let mut wakers = Wakers::default();
        let mut send = self.send.lock();
        self.poll_sends(&mut send, &mut wakers);
        let is_idle = send.is_idle();
        drop(send);
        wakers.wake();
        is_idle
    }

    /// How many bytes were written and not acknowledged.
    pub(super) fn unacknowledged(&self) -> u64 {
        self.send.lock().unacknowledged()
    }

    pub(super) fn status(&self) -> StatusGuard<'_> {
        self.status.lock()
    }

    pub(super) fn has_failed(&self) -> bool {
        self.status.has_failed()
    }

    /// Whether there is something to poll for, most of the time: what the peer has sent, and for
    /// a writer room in the send queue.
    #[inline(never)]
    pub(super) fn has_completions(&self, interest: StreamInterest) -> bool {
        let needs_sends = interest != StreamInterest::Readable || self.receives.is_shared();
        self.receives.has_any() || needs_sends && self.sends.has_completions()
    }

    /// As [`has_completions`](Self::has_completions), for a caller that looks again and again
    /// until somebody polls.
    #[inline]
    pub(super) fn watch(&self, interest: StreamInterest) -> impl Fn() -> bool {
        let own = match &self.receives {
            ReceiveQueue::Own(receives) => {
                let needs_sends = interest != StreamInterest::Readable;
                let sends = needs_sends.then(|| self.sends.watch());
                Some((receives.watch(), sends))
            }
            ReceiveQueue::Shared(_) => None,
        };
        move || match own {
            Some((receives, None)) => receives.may_have_completions(),
            Some((receives, Some(sends))) => {
                receives.may_have_completions() || sends.may_have_completions()
            }
            None => self.has_completions(interest),
        }
    }

    pub(super) fn fail(&self, failure: StreamFailure, wakers: &mut Wakers) {
        self.status().fail(failure, wakers);
    }

    /// Has the device receive no more.
    pub(super) fn move_to_error(&self) {
        // One that cannot be moved is gone.
        let _ = self.queue_pair.move_to_error();
    }

    /// Posts an empty write, which needs no memory, unless the last one is in flight: that
    /// one detects a dead peer as well.
    pub(super) fn send_keep_alive(&self, now: Instant) {
        let mut wakers = Wakers::default();
        let mut send = self.send.lock();
        self.poll_sends(&mut send, &mut wakers);
        let mut status = self.status();
        status.keep_alive.advance(now);
        let last = status.keep_alive.work;
        drop(status);
        let is_in_flight = last.is_some_and(|work| send.is_in_flight(work));
        if !is_in_flight && send.may_send && !self.has_failed() {
            match send.keep_alive(&self.queue_pair) {
                Ok(work) => self.status().keep_alive.work = Some(work),
                Err(failure) => self.fail(failure, &mut wakers),
            }
        }
        drop(send);
        wakers.wake();
    }

    /// Posts all receive requests, the first time.
    fn post_receives(&self) -> io::Result<()> {
        if self.receives.is_shared() || self.has_posted_receives.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let count = self.options.receive_requests() as usize;
        let mut requests: Vec<SgList> = match self.transport {
            Transport::Immediate => (0..count).map(|_| SgList::NONE).collect(),
            Transport::Send => {
                let domain = self.queue_pair.protection_domain();
                let messages = domain.allocate(count * MESSAGE_SIZE)?;
                let messages = messages.into_chunks(MESSAGE_SIZE);
                messages.into_iter().map(SgList::from).collect()
            }
        };
        self.queue_pair.post_receives(&mut requests)?;
        Ok(())
    }
}

impl rdmacm_core::QueuePair for StreamQueuePair {
    fn number(&self) -> u32 {
        self.queue_pair.number()
    }

    fn transport(&self) -> Fabric {
        self.queue_pair.transport()
    }

    fn depth_limits(&self) -> DepthLimits {
        self.queue_pair.depth_limits()
    }

    /// Moving it to INIT posts all receive requests.
    ///
    /// Writes to a dead peer must fail at some time: on the accepting side too, whose retries
    /// the connecting side chooses.
    fn modify(&self, attr: &QpAttr, mask: QpAttrMask) -> io::Result<()> {
        let mut attr = *attr;
        limit_attr_retries(&mut attr);
        if self.receives.is_shared() {
            attr.min_rnr_timer = SHARED_RNR_TIMER;
        }
        rdmacm_core::QueuePair::modify(&self.queue_pair, &attr, mask)?;
        if attr.qp_state == QpState::INIT {
            // Before the peer learns that it may send.
            self.post_receives()?;
        }
        Ok(())
    }
}

impl Drop for StreamQueuePair {
    fn drop(&mut self) {
        if self.device.context().is_in_child() {
            // A thread of the parent may have held the device's locks at the fork.
            return;
        }
        for (kind, token) in self.completion_queues() {
            self.device.remove_handler(token);
            self.set_armed(kind, false);
        }
    }
}
