//! What a queue pair is to be like.

use rdmacm_abi::Reserved;
use rdmacm_abi::uverbs::{CreateQp, CreateQpResponse};
use rdmacm_core::QpType;

use super::QueuePair;
use crate::completion_queue::CompletionQueue;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;

/// How much a queue pair holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "ibv_qp_cap")]
pub struct QpCaps {
    /// Send requests; siw wants at least 1.
    pub max_send_wr: u32,
    /// Receive requests.
    pub max_recv_wr: u32,
    /// Pieces of memory a send request names.
    pub max_send_sge: u32,
    /// Pieces of memory a receive request names.
    pub max_recv_sge: u32,
    /// Bytes a send request carries in line.
    pub max_inline_data: u32,
}

impl Default for QpCaps {
    /// 16 requests of one piece of memory in each direction, nothing in line.
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
    /// Whether they are nowhere smaller than `asked`.
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

/// What a queue pair is to be like. What is not said it gets of its own: a
/// protection domain, and a completion queue for each direction, as large as
/// the queue it serves.
#[derive(Clone, Debug)]
#[doc(alias = "ibv_qp_init_attr")]
pub struct QpOptions {
    qp_type: QpType,
    caps: QpCaps,
    signal_all: bool,
    protection_domain: Option<ProtectionDomain>,
    send_queue: Option<CompletionQueue>,
    receive_queue: Option<CompletionQueue>,
}

impl QpOptions {
    pub(super) fn new(qp_type: QpType) -> Self {
        Self {
            qp_type,
            caps: QpCaps::default(),
            signal_all: false,
            protection_domain: None,
            send_queue: None,
            receive_queue: None,
        }
    }

    /// How much it is to hold.
    #[must_use]
    #[doc(alias = "cap")]
    pub fn caps(self, caps: QpCaps) -> Self {
        Self { caps, ..self }
    }

    /// Whether every send request completes visibly, not only those that ask
    /// for it.
    #[must_use]
    #[doc(alias = "sq_sig_all")]
    pub fn signal_all(self, signal_all: bool) -> Self {
        Self { signal_all, ..self }
    }

    /// The protection domain.
    #[must_use]
    #[doc(alias = "ibv_pd")]
    pub fn protection_domain(self, domain: &ProtectionDomain) -> Self {
        Self {
            protection_domain: Some(domain.clone()),
            ..self
        }
    }

    /// Where it reports what it has sent.
    #[must_use]
    #[doc(alias = "send_cq")]
    pub fn send_queue(self, queue: &CompletionQueue) -> Self {
        Self {
            send_queue: Some(queue.clone()),
            ..self
        }
    }

    /// Where it reports what it has received.
    #[must_use]
    #[doc(alias = "recv_cq")]
    pub fn receive_queue(self, queue: &CompletionQueue) -> Self {
        Self {
            receive_queue: Some(queue.clone()),
            ..self
        }
    }

    /// Makes the queue pair, and what it needs besides, on a device.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for a type other than RC, UC and UD, or for
    /// parts of another context; [`Error::Command`] when the kernel refuses,
    /// with `EOPNOTSUPP` for a type the device does not have and `EINVAL` for
    /// sizes beyond its limits.
    #[doc(alias = "ibv_create_qp", alias = "rdma_create_qp")]
    pub fn create(&self, context: &Context) -> Result<QueuePair> {
        let operation = Operation::CreateQueuePair(self.qp_type);
        if ![QpType::RC, QpType::UC, QpType::UD].contains(&self.qp_type) {
            let reason = "only RC, UC and UD can be created here";
            return Err(Error::invalid(operation, reason));
        }
        let domain = self
            .protection_domain
            .as_ref()
            .map(ProtectionDomain::context);
        let queues = [&self.send_queue, &self.receive_queue];
        let queues = queues.into_iter().flatten().map(CompletionQueue::context);
        if domain.into_iter().chain(queues).any(|one| !one.is(context)) {
            let reason = "its protection domain and completion queues must be of its own context";
            return Err(Error::invalid(operation, reason));
        }
        let protection_domain = match &self.protection_domain {
            Some(domain) => domain.clone(),
            None => context.create_protection_domain()?,
        };
        let queue = |given: &Option<CompletionQueue>, entries: u32| match given {
            Some(queue) => Ok(queue.clone()),
            None => context.create_completion_queue(entries.max(1)),
        };
        let send_queue = queue(&self.send_queue, self.caps.max_send_wr)?;
        let receive_queue = queue(&self.receive_queue, self.caps.max_recv_wr)?;
        let request = self.request(&protection_domain, &send_queue, &receive_queue);
        let answer = context.uverbs().create_qp(operation, request)?;
        let queue_pair = QueuePair {
            handle: answer.handle,
            number: answer.number,
            qp_type: self.qp_type,
            caps: answer.into(),
            protection_domain,
            send_queue,
            receive_queue,
        };
        queue_pair.check(self.caps)
    }

    fn request(
        &self,
        protection_domain: &ProtectionDomain,
        send_queue: &CompletionQueue,
        receive_queue: &CompletionQueue,
    ) -> CreateQp {
        CreateQp {
            response: 0,
            user_handle: 0,
            pd: protection_domain.handle(),
            send_cq: send_queue.handle(),
            recv_cq: receive_queue.handle(),
            srq: 0,
            max_send_wr: self.caps.max_send_wr,
            max_recv_wr: self.caps.max_recv_wr,
            max_send_sge: self.caps.max_send_sge,
            max_recv_sge: self.caps.max_recv_sge,
            max_inline_data: self.caps.max_inline_data,
            signal_all: self.signal_all.into(),
            qp_type: self.qp_type,
            is_srq: 0,
            reserved: Reserved::ZERO,
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
