//! Shared receive queues.

use std::sync::Arc;

use rdmacm_abi::uverbs::{CreateSrq, DestroySrq, QuerySrq};

use crate::completion::WorkId;
use crate::error::{Error, PostError, Result};
use crate::memory::SgList;
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;
use crate::request_id::QueueIndex;
use crate::token::Token;
use crate::work_queue::SharedReceiveRing;

/// A receive queue that several queue pairs share. Clones are the same queue. It is destroyed
/// when all of them and the queue pairs that use it are dropped.
///
/// A request completes on the completion queue of the queue pair that consumed it, which
/// must have space for all of them. If its completion was not polled when that queue pair is
/// destroyed, [`QueuePair::destroy`](crate::QueuePair::destroy) returns its memory. A request that
/// a queue pair was receiving into when it was destroyed or reset is returned only when the shared
/// queue is destroyed: on rxe of Linux 7.3, each peer that is lost amid a message of several packets takes one
/// place of the queue until then. After the context was closed, each of several completion queues may
/// report requests as failed that queue pairs of the others had completed.
///
/// rxe of Linux 7.3 reports that a queue pair in the error state consumes no more requests, as
/// [`QP_LAST_WQE_REACHED`](crate::AsyncEventKind::QP_LAST_WQE_REACHED); rxe of Linux 6.1 and
/// siw do not. A destroyed queue pair consumes no more requests on any driver.
#[derive(Clone, Debug)]
#[doc(alias = "ibv_srq")]
#[doc(alias = "ibv_destroy_srq", alias = "rdma_destroy_srq")]
pub struct SharedReceiveQueue(Arc<Created>);

#[derive(Debug)]
struct Created {
    domain: ProtectionDomain,
    token: Token,
    handle: u32,
    capacity: u32,
    has_memory: bool,
    queue: SharedReceiveRing,
}

/// Options for a shared receive queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "ibv_srq_init_attr")]
pub struct SrqOptions {
    /// The number of requests it holds, at least 1.
    pub max_wr: u32,
    /// Scatter/gather entries of a request. With 0 of them, for writes with immediate data, its
    /// requests have no memory, and queue pairs of any protection domain may use the queue.
    pub max_sge: u32,
}

impl SrqOptions {
    /// Creates it in a protection domain. Source: `ibv_create_srq(3)`.
    ///
    /// # Errors
    /// [`Error::Command`](crate::Error::Command) if the kernel refuses, with
    /// `EINVAL` for no requests or more than the device's limit.
    #[doc(alias = "ibv_create_srq", alias = "rdma_create_srq")]
    #[doc(alias = "ibv_create_srq_ex", alias = "rdma_create_srq_ex")]
    pub fn create(self, domain: &ProtectionDomain) -> Result<SharedReceiveQueue> {
        SharedReceiveQueue::create(domain, self)
    }
}

impl PartialEq for SharedReceiveQueue {
    /// Whether both are the same queue.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SharedReceiveQueue {}

impl SharedReceiveQueue {
    fn create(domain: &ProtectionDomain, options: SrqOptions) -> Result<Self> {
        let context = domain.context();
        let operation = Operation::CreateSharedReceiveQueue;
        let number = context.next_shared_queue().ok_or_else(|| {
            Error::invalid(operation, "its context has had as many of them as it can")
        })?;
        let token = context.next_token();
        let request = CreateSrq {
            response: 0,
            user_handle: token.handle(),
            pd: domain.handle(),
            max_wr: options.max_wr,
            max_sge: options.max_sge,
            limit: 0,
        };
        let uverbs = context.uverbs();
        let (answer, ring) = uverbs.provider().create_srq(uverbs, operation, request)?;
        let queue = SharedReceiveRing::new(
            number,
            answer.max_wr,
            // Drivers may have a minimum.
            answer.max_sge.min(options.max_sge),
            domain.clone(),
            ring,
        );
        Ok(Self(Arc::new(Created {
            domain: domain.clone(),
            token,
            handle: answer.handle,
            capacity: queue.capacity(),
            has_memory: options.max_sge > 0,
            queue,
        })))
    }

    /// Its protection domain.
    #[must_use]
    pub fn protection_domain(&self) -> &ProtectionDomain {
        &self.0.domain
    }

    /// How many requests it holds.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.0.capacity
    }

    /// Its token in events.
    #[must_use]
    pub fn token(&self) -> Token {
        self.0.token
    }

    /// Posts memory to receive a message into. Source: `ibv_post_srq_recv(3)`.
    ///
    /// # Errors
    /// [`PostError`] with the memory: the queue is full, or the memory has too many
    /// entries, belongs to another domain, or is not registered for writing.
    #[doc(alias = "ibv_post_srq_recv")]
    pub fn post_receive(&self, memory: impl Into<SgList>) -> Result<WorkId, PostError<SgList>> {
        let posted = self.0.queue.post(memory.into());
        posted.map_err(|refused| *refused)
    }

    /// Requests one [asynchronous event](crate::AsyncEvents) when fewer than `limit` requests
    /// are left; 0 for none. Source: `ibv_modify_srq(3)`.
    ///
    /// # Errors
    /// [`Error::Command`](crate::Error::Command) if the kernel refuses, with
    /// `EINVAL` for more than it holds.
    #[doc(alias = "ibv_modify_srq", alias = "srq_limit")]
    pub fn set_limit(&self, limit: u32) -> Result<()> {
        let uverbs = self.0.domain.context().uverbs();
        let operation = Operation::SharedReceiveQueue;
        uverbs
            .provider()
            .set_srq_limit(uverbs, operation, self.0.handle, limit)
    }

    /// The limit; 0 once it was reached, except on siw. Source: `ibv_query_srq(3)`.
    ///
    /// # Errors
    /// [`Error::Command`](crate::Error::Command) if the kernel refuses.
    #[doc(alias = "ibv_query_srq")]
    pub fn limit(&self) -> Result<u32> {
        let uverbs = self.0.domain.context().uverbs();
        let request = QuerySrq::new(self.0.handle);
        let answer = uverbs.ask(Operation::SharedReceiveQueue, &request)?;
        Ok(answer.limit)
    }

    /// Whether its requests may have memory, which is of its protection domain.
    pub(crate) fn has_memory(&self) -> bool {
        self.0.has_memory
    }

    pub(crate) fn handle(&self) -> u32 {
        self.0.handle
    }

    /// Its index in completion queues.
    pub(crate) fn index(&self) -> QueueIndex {
        self.0.queue.index()
    }

    pub(crate) fn queue(&self) -> SharedReceiveRing {
        self.0.queue.clone()
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        let uverbs = self.domain.context().uverbs();
        if !uverbs.destroy(&DestroySrq::new(self.handle)) {
            // A queue pair that was not destroyed may still use this memory.
            let posted = self.queue.take_all().into_iter();
            posted.for_each(|(_, sg_list)| sg_list.keep());
        }
    }
}
