//! Shared receive queues.

use std::sync::{Arc, Weak};

use rdmacm_abi::uverbs::{CreateSrq, DestroySrq, QuerySrq};

use crate::completion::WorkId;
use crate::error::{PostError, Result};
use crate::memory::SgList;
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;
use crate::token::Token;
use crate::work_queue::{ReceiveParts, ReceiveQueue, WorkQueue};

/// A receive queue that several queue pairs take from. Clones are the same queue;
/// the kernel's goes when they and the queue pairs that use it are gone.
///
/// Its requests complete on the completion queue of whichever queue pair took
/// them, which must have room for all of them. One that a queue pair was filling
/// when it was destroyed comes back with the queue's end only.
///
/// That a queue pair in the error state takes no more of them is told by rxe of Linux
/// 7.3, as [`QP_LAST_WQE_REACHED`](crate::AsyncEventKind::QP_LAST_WQE_REACHED), and not
/// by that of 6.1 nor by siw. One that is destroyed takes no more on any of them.
#[derive(Clone, Debug)]
#[doc(alias = "ibv_srq")]
pub struct SharedReceiveQueue(Arc<Created>);

#[derive(Debug)]
struct Created {
    domain: ProtectionDomain,
    token: Token,
    handle: u32,
    capacity: u32,
    queue: Arc<ReceiveQueue>,
}

/// What a shared receive queue is to be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "ibv_srq_init_attr")]
pub struct SrqOptions {
    /// How many requests it is to hold, at least 1.
    pub max_wr: u32,
    /// Scatter/gather entries of a request.
    pub max_sge: u32,
}

impl SrqOptions {
    /// Makes it in a protection domain.
    ///
    /// # Errors
    /// [`Error::Command`](crate::Error::Command) when the kernel refuses, with
    /// `EINVAL` for no requests or more than the device's limit.
    #[doc(alias = "ibv_create_srq", alias = "rdma_create_srq")]
    pub fn create(self, domain: &ProtectionDomain) -> Result<SharedReceiveQueue> {
        SharedReceiveQueue::create(domain, self)
    }
}

impl SharedReceiveQueue {
    fn create(domain: &ProtectionDomain, options: SrqOptions) -> Result<Self> {
        let context = domain.context();
        let token = context.next_token()?;
        let request = CreateSrq {
            response: 0,
            user_handle: token.handle(),
            pd: domain.handle(),
            max_wr: options.max_wr,
            max_sge: options.max_sge,
            limit: 0,
        };
        let uverbs = context.uverbs();
        let operation = Operation::CreateSharedReceiveQueue;
        let (answer, ring) = uverbs.provider().create_srq(uverbs, operation, request)?;
        let queue = ReceiveQueue::new(ReceiveParts {
            token: token.number(),
            max_requests: answer.max_wr,
            max_sges: answer.max_sge,
            domain: domain.clone(),
            owner: None,
            ring,
        });
        Ok(Self(Arc::new(Created {
            domain: domain.clone(),
            token,
            handle: answer.handle,
            capacity: queue.capacity(),
            queue: Arc::new(queue),
        })))
    }

    /// The domain it was made in.
    #[must_use]
    pub fn protection_domain(&self) -> &ProtectionDomain {
        &self.0.domain
    }

    /// How many requests it holds.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.0.capacity
    }

    /// Its name in events.
    #[must_use]
    pub fn token(&self) -> Token {
        self.0.token
    }

    /// Posts memory to receive a message into.
    ///
    /// # Errors
    /// [`PostError`] with the memory: the queue is full, the pieces are too many, of
    /// another domain, or not registered for writing.
    #[doc(alias = "ibv_post_srq_recv")]
    pub fn post_receive(&self, memory: impl Into<SgList>) -> Result<WorkId, PostError<SgList>> {
        self.0.queue.post(memory.into())
    }

    /// Asks for an [asynchronous event](crate::AsyncEvents) once, when fewer than
    /// `limit` requests are left; 0 asks for none.
    ///
    /// # Errors
    /// [`Error::Command`](crate::Error::Command) when the kernel refuses, with
    /// `EINVAL` for more than it holds.
    #[doc(alias = "ibv_modify_srq", alias = "srq_limit")]
    pub fn set_limit(&self, limit: u32) -> Result<()> {
        let uverbs = self.0.domain.context().uverbs();
        let operation = Operation::SharedReceiveQueue;
        uverbs
            .provider()
            .set_srq_limit(uverbs, operation, self.0.handle, limit)
    }

    /// The limit that is set; 0 once it was reached, but on siw.
    ///
    /// # Errors
    /// [`Error::Command`](crate::Error::Command) when the kernel refuses.
    #[doc(alias = "ibv_query_srq")]
    pub fn limit(&self) -> Result<u32> {
        let uverbs = self.0.domain.context().uverbs();
        let request = QuerySrq::new(self.0.handle);
        let answer = uverbs.ask(Operation::SharedReceiveQueue, &request)?;
        Ok(answer.limit)
    }

    pub(crate) fn handle(&self) -> u32 {
        self.0.handle
    }

    pub(crate) fn queue(&self) -> Weak<dyn WorkQueue> {
        let queue: Weak<ReceiveQueue> = Arc::downgrade(&self.0.queue);
        queue
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        let uverbs = self.domain.context().uverbs();
        if !uverbs.destroy(&DestroySrq::new(self.handle)) {
            // A queue pair that was not destroyed may use this yet.
            let posted = self.queue.take_all().into_iter();
            posted.for_each(|(_, sg_list)| sg_list.keep());
        }
    }
}
