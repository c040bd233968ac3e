//! Shared receive queues.

use rdmacm_abi::uverbs::AsyncEventKind;

use super::Verbs;
use super::work_queue::{Taken, WorkQueue};

/// A receive queue from which several queue pairs take requests.
#[derive(Debug)]
pub(super) struct SharedReceiveQueue {
    pub(super) context: u64,
    pub(super) domain: u32,
    pub(super) user_handle: u64,
    pub(super) max_sge: u32,
    queue: WorkQueue,
    /// What queue pairs have taken.
    taken: Taken,
    limit: u32,
    /// Whether the limit is reported when it is reached.
    is_armed: bool,
}

impl SharedReceiveQueue {
    pub(super) fn new(
        (context, domain): (u64, u32),
        user_handle: u64,
        max_sge: u32,
        queue: WorkQueue,
    ) -> Self {
        Self {
            context,
            domain,
            user_handle,
            max_sge,
            queue,
            taken: Taken::default(),
            limit: 0,
            is_armed: false,
        }
    }

    /// How many requests it holds.
    pub(super) fn capacity(&self) -> u32 {
        self.queue.capacity()
    }

    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    /// Reports once when fewer requests than this are left; 0 for never.
    pub(super) fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
        self.is_armed = limit > 0;
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        self.taken.take(&self.queue)
    }

    /// Whether fewer requests are left than the limit, which is then reported no more
    /// (`get_srq_wqe`, `siw_rqe_get`).
    fn take_limit_reached(&mut self) -> bool {
        if !self.is_armed || self.taken.has_left(self.limit, &self.queue) {
            return false;
        }
        self.is_armed = false;
        if let WorkQueue::Rxe(_) = self.queue {
            self.limit = 0;
        }
        true
    }
}

impl Verbs {
    /// Takes the next request of a shared receive queue.
    pub(super) fn take_shared_receive(&mut self, handle: u32) -> Option<Vec<u8>> {
        let queue = self.shared_receive_queues.get_mut(&handle)?;
        let element = queue.take()?;
        if queue.take_limit_reached() {
            let (context, element) = (queue.context, queue.user_handle);
            self.report(context, AsyncEventKind::SRQ_LIMIT_REACHED, element);
        }
        Some(element)
    }
}
