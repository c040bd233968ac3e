//! A queue pair that carries messages, and its memory.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use rdmacm_core::{DepthLimits, QpAttr, QpAttrMask, QpState, QpType, QueuePair as _, Transport};
use rdmacm_verbs::{CompletionQueue, Error, ProtectionDomain, QpCaps, QueuePair, Result};

use super::options::MessageOptions;
use super::state::State;
use crate::busy_polling::BusyPolling;
use crate::data::{CompletionHandler, CqKind, KeepAlive, OpenDevice, limit_attr_retries};

mod completions;
mod notifications;
mod receives;
mod sends;

use receives::ReceiveRequests;
pub(crate) use receives::ReturnedMemory;
pub(crate) use sends::Destination;
pub(super) use sends::Reservation;

/// A queue pair that carries messages, with registered memory to send from and to receive
/// into.
///
/// The caller that waits polls the completion queues, hands all completions to those who
/// wait for them, and wakes them. Requests that are sent complete in a queue of their own:
/// a caller that waits for a message need not be notified of them.
#[derive(Debug)]
pub(crate) struct MessageQueuePair {
    queue_pair: QueuePair,
    sends: CompletionQueue,
    receives: CompletionQueue,
    device: Arc<OpenDevice>,
    options: MessageOptions,
    pub(super) busy_polling: BusyPolling,
    receive_requests: ReceiveRequests,
    returned_memory: Arc<ReturnedMemory>,
    /// Whether there may be messages in the state.
    has_arrivals: AtomicBool,
    state: Mutex<State>,
}

impl MessageQueuePair {
    pub(crate) fn new(
        device: &Arc<OpenDevice>,
        qp_type: QpType,
        options: MessageOptions,
        now: Instant,
    ) -> Result<Arc<Self>> {
        let context = device.context();
        let (receives, sends) = (options.posted_receives(), options.sends);
        let create_queue = |entries| {
            let options = CompletionQueue::options(entries).channel(device.channel());
            options.create(context)
        };
        // siw may complete one of them twice when the connection ends.
        let twice = u32::from(context.transport() == Transport::IWarp);
        let send_cq = create_queue(sends.saturating_add(twice))?;
        let recv_cq = create_queue(receives)?;
        let domain = match &options.protection_domain {
            Some(domain) => domain.clone(),
            None => context.create_protection_domain()?,
        };
        let memory = domain.allocate(options.memory().unwrap_or_default())?;
        let pool = memory.into_chunks(options.size.max(1));
        let queue_pair = QueuePair::options(qp_type)
            .caps(QpCaps {
                max_send_wr: sends,
                max_recv_wr: receives,
                ..QpCaps::default()
            })
            .protection_domain(&domain)
            .send_cq(&send_cq)
            .recv_cq(&recv_cq)
            .create(context)?;
        let keep_alive = KeepAlive::new(options.keep_alive, now);
        let max_sends = usize::try_from(sends).unwrap_or(usize::MAX);
        let max_receives = usize::try_from(receives).unwrap_or(usize::MAX);
        let state = State::new(
            pool,
            max_receives,
            max_sends,
            queue_pair.transport(),
            keep_alive,
        );
        let this = Arc::new_cyclic(|this| Self {
            queue_pair,
            sends: send_cq,
            receives: recv_cq,
            device: Arc::clone(device),
            receive_requests: ReceiveRequests::default(),
            returned_memory: Arc::new(ReturnedMemory::new(this, &options)),
            options,
            busy_polling: BusyPolling::default(),
            has_arrivals: AtomicBool::new(false),
            state: Mutex::new(state),
        });
        for kind in [CqKind::Sends, CqKind::Receives] {
            let handler: Weak<Self> = Arc::downgrade(&this);
            device.add_handler(this.queue(kind).token(), handler, kind);
        }
        Ok(this)
    }

    pub(crate) fn queue_pair(&self) -> &QueuePair {
        &self.queue_pair
    }

    pub(crate) fn device(&self) -> &Arc<OpenDevice> {
        &self.device
    }

    pub(crate) fn protection_domain(&self) -> &ProtectionDomain {
        self.queue_pair.protection_domain()
    }

    pub(crate) fn options(&self) -> &MessageOptions {
        &self.options
    }

    /// Takes the memory of messages back.
    pub(crate) fn returned_memory(&self) -> &Arc<ReturnedMemory> {
        &self.returned_memory
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn queue(&self, kind: CqKind) -> &CompletionQueue {
        match kind {
            CqKind::Sends => &self.sends,
            CqKind::Receives => &self.receives,
        }
    }

    /// Whether a request was refused because the connection is closed: by siw, or because
    /// another request has failed meanwhile. The event that says why may not have been read
    /// yet.
    pub(crate) fn is_refused_closed(&self, error: &Error) -> bool {
        match error {
            Error::Command(_) => {
                matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOTCONN))
            }
            Error::InvalidInput { .. } => self.queue_pair.is_broken(),
            _ => false,
        }
    }
}

impl rdmacm_core::QueuePair for MessageQueuePair {
    fn number(&self) -> u32 {
        self.queue_pair.number()
    }

    fn transport(&self) -> Transport {
        self.queue_pair.transport()
    }

    fn depth_limits(&self) -> DepthLimits {
        self.queue_pair.depth_limits()
    }

    /// Moving it to INIT posts all receive requests.
    ///
    /// With keep-alives, requests to a dead peer must fail at some time: on the accepting
    /// side too, whose retries the connecting side chooses.
    fn modify(&self, attr: &QpAttr, mask: QpAttrMask) -> io::Result<()> {
        let mut attr = *attr;
        if self.options.has_keep_alive() {
            limit_attr_retries(&mut attr);
        }
        rdmacm_core::QueuePair::modify(&self.queue_pair, &attr, mask)?;
        if attr.qp_state == QpState::INIT {
            // Before the peer learns that it may send.
            self.post_receives()?;
        }
        Ok(())
    }
}

impl CompletionHandler for MessageQueuePair {
    fn notified(&self, kind: CqKind) {
        self.notified(kind);
    }

    fn poll(&self) {
        self.poll();
    }
}

impl Drop for MessageQueuePair {
    fn drop(&mut self) {
        if self.device.context().is_in_child() {
            // A thread of the parent may have held the device's locks at the fork.
            return;
        }
        for kind in [CqKind::Sends, CqKind::Receives] {
            self.device.remove_handler(self.queue(kind).token());
            self.set_armed(&mut self.state(), kind, false);
        }
    }
}
