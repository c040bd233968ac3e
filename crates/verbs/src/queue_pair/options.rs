//! Options of a queue pair.

use std::sync::Arc;

use parking_lot::Mutex;
use rdmacm_abi::Reserved;
use rdmacm_abi::uverbs::{CreateQp, CreateQpResponse};
use rdmacm_core::QpType;

use super::QueuePair;
use super::admission::Admission;
use crate::completion::WorkId;
use crate::completion_queue::CompletionQueue;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;
use crate::provider::NewQueuePair;
use crate::request_id::QueueIndex;
use crate::shared_receive_queue::SharedReceiveQueue;
use crate::token::Token;
use crate::work_queue::{QpStatus, ReceiveParts, ReceiveQueue, SendParts, SendQueue};

/// The capacities of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "ibv_qp_cap")]
pub struct QpCaps {
    /// Send requests; on siw at least 1.
    pub max_send_wr: u32,
    /// Receive requests.
    pub max_recv_wr: u32,
    /// Scatter/gather entries of a send request.
    pub max_send_sge: u32,
    /// Scatter/gather entries of a receive request.
    pub max_recv_sge: u32,
    /// Bytes of inline data of a send request.
    pub max_inline_data: u32,
}

impl Default for QpCaps {
    /// 16 requests with one scatter/gather entry in each direction, no inline data.
    fn default() -> Self {
        Self {
            max_send_wr: 16,
            max_recv_wr: 16,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: 0,
        }
    }
}

impl QpCaps {
    /// Whether none is smaller than in `asked`.
    pub(super) fn hold(self, asked: Self) -> bool {
        self.max_send_wr >= asked.max_send_wr
            && self.max_recv_wr >= asked.max_recv_wr
            && self.max_send_sge >= asked.max_send_sge
            && self.max_recv_sge >= asked.max_recv_sge
            && self.max_inline_data >= asked.max_inline_data
    }
}

impl From<CreateQpResponse> for QpCaps {
    fn from(answer: CreateQpResponse) -> Self {
        Self {
            max_send_wr: answer.max_send_wr,
            max_recv_wr: answer.max_recv_wr,
            max_send_sge: answer.max_send_sge,
            max_recv_sge: answer.max_recv_sge,
            max_inline_data: answer.max_inline_data,
        }
    }
}

/// Options of a queue pair. By default it gets a protection domain of its own (that of its
/// shared receive queue, if it has one), and for each direction a completion queue of its
/// own, as large as the work queue; on siw that of send requests has one entry more.
#[derive(Clone, Debug)]
#[doc(alias = "ibv_qp_init_attr")]
pub struct QpOptions {
    qp_type: QpType,
    caps: QpCaps,
    signal_all: bool,
    with_completion_channels: bool,
    protection_domain: Option<ProtectionDomain>,
    send_cq: Option<CompletionQueue>,
    recv_cq: Option<CompletionQueue>,
    shared: Option<SharedReceiveQueue>,
}

/// The objects that a queue pair is created from.
struct Parts {
    domain: ProtectionDomain,
    send_cq: CompletionQueue,
    recv_cq: CompletionQueue,
}

impl QpOptions {
    pub(super) fn new(qp_type: QpType) -> Self {
        Self {
            qp_type,
            caps: QpCaps::default(),
            signal_all: false,
            with_completion_channels: false,
            protection_domain: None,
            send_cq: None,
            recv_cq: None,
            shared: None,
        }
    }

    /// The context of the given objects, if any.
    #[must_use]
    pub fn context(&self) -> Option<&Context> {
        let domain = self.protection_domain.as_ref();
        let queue = self.send_cq.as_ref().or(self.recv_cq.as_ref());
        let shared = self.shared.as_ref();
        domain
            .map(ProtectionDomain::context)
            .or(queue.map(CompletionQueue::context))
            .or(shared.map(|queue| queue.protection_domain().context()))
    }

    /// Sets its capacities.
    #[must_use]
    #[doc(alias = "cap")]
    pub fn caps(self, caps: QpCaps) -> Self {
        Self { caps, ..self }
    }

    /// Whether every send request generates a completion, not only signalled ones.
    #[must_use]
    #[doc(alias = "sq_sig_all")]
    pub fn signal_all(self, signal_all: bool) -> Self {
        Self { signal_all, ..self }
    }

    /// Gives each of its own completion queues a completion channel, so that
    /// [`CompletionQueue::next`] can wait.
    #[must_use]
    #[doc(alias = "ibv_comp_channel")]
    pub fn with_completion_channels(self) -> Self {
        Self {
            with_completion_channels: true,
            ..self
        }
    }

    /// Sets the protection domain.
    #[must_use]
    #[doc(alias = "ibv_pd")]
    pub fn protection_domain(self, domain: &ProtectionDomain) -> Self {
        Self {
            protection_domain: Some(domain.clone()),
            ..self
        }
    }

    /// Sets the completion queue of its send requests.
    #[must_use]
    pub fn send_cq(self, queue: &CompletionQueue) -> Self {
        Self {
            send_cq: Some(queue.clone()),
            ..self
        }
    }

    /// Sets the completion queue of its receive requests.
    #[must_use]
    pub fn recv_cq(self, queue: &CompletionQueue) -> Self {
        Self {
            recv_cq: Some(queue.clone()),
            ..self
        }
    }

    /// Sets a shared receive queue. The completion queue of its receive requests must be
    /// large enough for all requests of that queue.
    #[must_use]
    #[doc(alias = "ibv_srq")]
    pub fn shared_receive_queue(self, queue: &SharedReceiveQueue) -> Self {
        Self {
            shared: Some(queue.clone()),
            ..self
        }
    }

    /// Creates the queue pair, and the objects it gets of its own, on a device.
    /// Source: `ibv_create_qp(3)`.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for a type other than RC, UC and UD, for objects of another
    /// context, for another domain than that of the shared receive queue, or for a completion
    /// queue that is too small for it or serves as many queue pairs as it can;
    /// [`Error::Map`] if a queue of the driver cannot be mapped; [`Error::Command`], with
    /// `EOPNOTSUPP` for a type that the device does not support and `EINVAL` for capacities beyond
    /// its limits.
    #[doc(alias = "ibv_create_qp", alias = "rdma_create_qp")]
    #[doc(alias = "ibv_create_qp_ex", alias = "rdma_create_qp_ex")]
    pub fn create(&self, context: &Context) -> Result<QueuePair> {
        let operation = Operation::CreateQueuePair(self.qp_type);
        self.check(context)
            .map_err(|reason| Error::invalid(operation, reason))?;
        if context.is_in_child() {
            return Err(context.closed_error());
        }
        let parts = self.parts(context)?;
        let tokens = [(); 3].map(|()| context.next_token());
        let sends = Admission::own(&parts.send_cq);
        let sends = sends.map_err(|reason| Error::invalid(operation, reason))?;
        let receives = match &self.shared {
            None => Admission::own(&parts.recv_cq),
            Some(shared) => Admission::shared(&parts.recv_cq, shared),
        };
        let receives = receives.map_err(|reason| Error::invalid(operation, reason))?;
        let request = self.request(tokens[0], &parts);
        let made = context.uverbs().create_qp(operation, request)?;
        // siw makes no receive queue for no requests (`siw_create_qp`): that needs no place.
        let has_receives = made.receive.is_some() || self.shared.is_some();
        let indices = (sends.keep(), has_receives.then(|| receives.keep()));
        let queue_pair = self.assemble(made, parts, tokens, indices);
        queue_pair.check(self.caps)?;
        Ok(queue_pair)
    }

    fn check(&self, context: &Context) -> Result<(), &'static str> {
        if ![QpType::RC, QpType::UC, QpType::UD].contains(&self.qp_type) {
            return Err("only RC, UC and UD can be created here");
        }
        let domain = self.protection_domain.iter();
        let domain = domain.map(ProtectionDomain::context);
        let queues = [&self.send_cq, &self.recv_cq].into_iter();
        let queues = queues.flatten().map(CompletionQueue::context);
        let shared = self.shared.iter();
        let shared = shared.map(|queue| queue.protection_domain().context());
        let mut all = domain.chain(queues).chain(shared);
        if all.any(|one| one != context) {
            return Err("its protection domain and queues must be of its own context");
        }
        match (&self.protection_domain, &self.shared) {
            (Some(domain), Some(shared))
                if shared.has_memory() && shared.protection_domain() != domain =>
            {
                Err("its protection domain must be that of its shared receive queue")
            }
            _ => Ok(()),
        }
    }

    fn parts(&self, context: &Context) -> Result<Parts> {
        let domain = match (&self.protection_domain, &self.shared) {
            (Some(domain), _) => domain.clone(),
            (None, Some(shared)) => shared.protection_domain().clone(),
            (None, None) => context.create_protection_domain()?,
        };
        // One more where the device may complete a request twice.
        let twice = context.uverbs().provider().completes_individually();
        let sends = self.caps.max_send_wr.saturating_add(twice.into());
        let receives = match &self.shared {
            Some(shared) => shared.capacity(),
            None => self.caps.max_recv_wr,
        };
        let queue = |choice: &Option<CompletionQueue>, entries: u32| match choice {
            Some(queue) => Ok(queue.clone()),
            None => self.own_queue(context, entries.max(1)),
        };
        Ok(Parts {
            domain,
            send_cq: queue(&self.send_cq, sends)?,
            recv_cq: queue(&self.recv_cq, receives)?,
        })
    }

    fn own_queue(&self, context: &Context, entries: u32) -> Result<CompletionQueue> {
        let options = CompletionQueue::options(entries);
        if self.with_completion_channels {
            let channel = context.create_completion_channel()?;
            options.channel(&channel).create(context)
        } else {
            options.create(context)
        }
    }

    fn request(&self, token: Token, parts: &Parts) -> CreateQp {
        let shared = self.shared.as_ref();
        // A shared queue has its own sizes.
        let own = |value: u32| if shared.is_some() { 0 } else { value };
        CreateQp {
            response: 0,
            user_handle: token.handle(),
            pd: parts.domain.handle(),
            send_cq: parts.send_cq.handle(),
            recv_cq: parts.recv_cq.handle(),
            srq: shared.map_or(0, SharedReceiveQueue::handle),
            max_send_wr: self.caps.max_send_wr,
            max_recv_wr: own(self.caps.max_recv_wr),
            max_send_sge: self.caps.max_send_sge,
            max_recv_sge: own(self.caps.max_recv_sge),
            max_inline_data: self.caps.max_inline_data,
            signal_all: self.signal_all.into(),
            qp_type: self.qp_type,
            is_srq: shared.is_some().into(),
            reserved: Reserved::ZERO,
        }
    }

    fn assemble(
        &self,
        made: NewQueuePair,
        parts: Parts,
        tokens: [Token; 3],
        indices: (QueueIndex, Option<QueueIndex>),
    ) -> QueuePair {
        let [token, send_token, receive_token] = tokens;
        let (send_index, receive_index) = indices;
        let answer = made.answer;
        let qp_status = Arc::new(QpStatus::default());
        let Parts {
            domain,
            send_cq,
            recv_cq,
        } = parts;
        let sends = SendParts {
            queue: WorkId::own_queue(send_token),
            index: send_index,
            handle: answer.handle,
            number: answer.number,
            qp_type: self.qp_type,
            signal_all: self.signal_all,
            max_requests: answer.max_send_wr,
            max_sges: answer.max_send_sge,
            max_inline: answer.max_inline_data,
            domain: domain.clone(),
            completions: send_cq.clone(),
            qp_status: Arc::clone(&qp_status),
        };
        let (sends, completions) = SendQueue::new(sends, made.send);
        send_cq.admit(send_index, completions);
        let receives = made.receive.zip(receive_index).map(|(ring, index)| {
            let parts = ReceiveParts {
                queue: WorkId::own_queue(receive_token),
                index,
                number: answer.number,
                max_requests: answer.max_recv_wr,
                max_sges: answer.max_recv_sge,
                domain: domain.clone(),
                completions: recv_cq.clone(),
                qp_status: Arc::clone(&qp_status),
            };
            let (receives, completions) = ReceiveQueue::new(parts, ring);
            recv_cq.admit(index, completions);
            receives
        });
        if let Some(index) = receive_index {
            recv_cq.admit_number(index, answer.number, self.qp_type, &qp_status);
        }
        QueuePair {
            handle: answer.handle,
            number: answer.number,
            token,
            qp_type: self.qp_type,
            caps: answer.into(),
            protection_domain: domain,
            send_cq,
            recv_cq,
            shared: self.shared.clone(),
            qp_status,
            stopping: Mutex::new(()),
            sends,
            receives,
            destroyed: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_hold_what_is_nowhere_larger() {
        let asked = QpCaps::default();
        assert!(asked.hold(asked));
        let larger = QpCaps {
            max_send_wr: 31,
            max_send_sge: 4,
            ..asked
        };
        assert!(larger.hold(asked));
        assert!(!asked.hold(larger));
        for smaller in [
            QpCaps {
                max_recv_wr: 15,
                ..larger
            },
            QpCaps {
                max_recv_sge: 0,
                ..larger
            },
        ] {
            assert!(!smaller.hold(asked));
        }
    }
}
