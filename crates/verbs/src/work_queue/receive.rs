//! The posting half of a queue pair's receive queue.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rtrb::{Producer, RingBuffer};

use super::entries::{Entries, MAX_SGES, check_writable};
use super::receive_completions::ReceiveCompletions;
use super::{QpStatus, WorkQueue};
use crate::completion::WorkId;
use crate::completion_queue::CompletionQueue;
use crate::error::{Error, PostError};
use crate::memory::SgList;
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;
use crate::provider::ReceiveRing;
use crate::request_id::{QueueIndex, RequestId};

/// The posting half of a queue pair's receive queue.
#[derive(Debug)]
pub(crate) struct ReceiveQueue {
    parts: ReceiveParts,
    max_sges: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    ring: Box<dyn ReceiveRing>,
    posted: Producer<SgList>,
    /// The number of the next request.
    next: u32,
}

#[derive(Debug)]
pub(crate) struct ReceiveParts {
    pub(crate) token: u32,
    /// Its index in the completion queue.
    pub(crate) index: QueueIndex,
    /// The queue pair's number.
    pub(crate) number: u32,
    pub(crate) max_requests: u32,
    pub(crate) max_sges: u32,
    pub(crate) domain: ProtectionDomain,
    /// Reserves an entry for the completion of each request.
    pub(crate) completions: CompletionQueue,
    pub(crate) qp_status: Arc<QpStatus>,
}

impl ReceiveQueue {
    /// Both halves.
    pub(crate) fn new(
        parts: ReceiveParts,
        ring: Box<dyn ReceiveRing>,
    ) -> (Self, Box<dyn WorkQueue>) {
        let capacity = parts.max_requests.min(ring.capacity()) as usize;
        let (producer, consumer) = RingBuffer::new(capacity);
        let qp_status = Arc::clone(&parts.qp_status);
        let completions = ReceiveCompletions::new(parts.token, parts.number, qp_status, consumer);
        let queue = Self {
            max_sges: parts.max_sges.min(ring.max_sges()).min(MAX_SGES) as usize,
            parts,
            state: Mutex::new(State {
                ring,
                posted: producer,
                next: 0,
            }),
        };
        (queue, Box::new(completions))
    }

    pub(crate) fn index(&self) -> QueueIndex {
        self.parts.index
    }

    /// Posts memory to receive into.
    pub(crate) fn post(&self, sg_list: SgList) -> Result<WorkId, PostError<SgList>> {
        if let Err(reason) = check_writable(&self.parts.domain, self.max_sges, &sg_list) {
            return Err(refused(reason, sg_list));
        }
        let uverbs = self.parts.domain.context().uverbs();
        if uverbs.is_in_child() {
            return Err(PostError::new(uverbs.gone(), sg_list));
        }
        let mut state = self.state();
        if let Err(reason) = self.reserve(&state) {
            return Err(refused(reason, sg_list));
        }
        let number = state.next;
        let id = RequestId {
            queue: self.parts.index,
            number,
        };
        let State { ring, posted, next } = &mut *state;
        let mut entries = Entries::new();
        let entries = entries.of(&sg_list);
        // First: the device may complete the request as soon as it is in its queue. There is
        // space, as `reserve` has checked.
        if posted.push(sg_list).is_ok() {
            ring.push(id.to_device(), entries);
        }
        *next = number.wrapping_add(1);
        let queue = self.parts.token;
        Ok(WorkId { queue, number })
    }

    /// Does the checks that need the lock, and reserves a completion queue entry.
    fn reserve(&self, state: &State) -> Result<(), &'static str> {
        // Checked under the lock, so that no request is added after a flush.
        if self.parts.qp_status.is_broken() {
            return Err("the queue pair is in the error state");
        }
        if state.posted.is_full() || !state.ring.has_room() {
            return Err(QUEUE_FULL);
        }
        if self.parts.completions.reserve(1, 0) {
            Ok(())
        } else {
            Err(COMPLETION_QUEUE_FULL)
        }
    }

    /// Waits until all callers that post have added their requests, or will find the queue pair
    /// in the error state.
    pub(crate) fn wait_for_posters(&self) {
        drop(self.state());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) const COMPLETION_QUEUE_FULL: &str =
    "the completion queue has no room left for its completion";
pub(super) const QUEUE_FULL: &str = "the receive queue is full";

#[cold]
pub(super) fn refused(reason: &'static str, sg_list: SgList) -> PostError<SgList> {
    PostError::new(Error::invalid(Operation::Receive, reason), sg_list)
}
