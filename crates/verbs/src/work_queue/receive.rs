//! The posting half of a queue pair's receive queue.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::entries::{Entries, MAX_SGES, check_writable};
use super::posted_ring::{Producer, Vacancy, posted_ring};
use super::receive_completions::ReceiveCompletions;
use super::send::{MAX_MESSAGE, Number};
use super::{AnyWorkQueue, QpStatus};
use crate::completion::{WorkId, WorkIds};
use crate::completion_queue::CompletionQueue;
use crate::error::{Error, PostError, Result};
use crate::fork_detector::ForkDetector;
use crate::memory::SgList;
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;
use crate::provider::{ReceiveRing, ReceiveRings};
use crate::request_id::{QueueIndex, RequestId};

/// The posting half of a queue pair's receive queue.
#[derive(Debug)]
pub(crate) struct ReceiveQueue {
    parts: ReceiveParts,
    max_sges: usize,
    /// The number of its domain if it takes memory, otherwise 0.
    fast_path_domain: usize,
    fork_detector: ForkDetector,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    ring: ReceiveRings,
    posted: Producer<()>,
}

#[derive(Debug)]
pub(crate) struct ReceiveParts {
    pub(crate) queue: u32,
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
    pub(crate) fn new(parts: ReceiveParts, ring: ReceiveRings) -> (Self, AnyWorkQueue) {
        let capacity = parts.max_requests.min(ring.capacity());
        let (producer, consumer) = posted_ring(capacity);
        let qp_status = Arc::clone(&parts.qp_status);
        let completions = ReceiveCompletions::new(parts.queue, parts.number, qp_status, consumer);
        let max_sges = parts.max_sges.min(ring.max_sges()).min(MAX_SGES) as usize;
        let queue = Self {
            max_sges,
            fast_path_domain: if max_sges > 0 { parts.domain.id() } else { 0 },
            fork_detector: parts.domain.context().uverbs().fork_detector(),
            parts,
            state: Mutex::new(State {
                ring,
                posted: producer,
            }),
        };
        (queue, AnyWorkQueue::Receive(completions))
    }

    pub(crate) fn index(&self) -> QueueIndex {
        self.parts.index
    }

    /// Posts memory to receive into.
    #[inline]
    pub(crate) fn post(&self, sg_list: SgList) -> Result<WorkId, Box<PostError<SgList>>> {
        self.post_one(sg_list).map(|number| self.work(number))
    }

    /// Posts a request without memory: for an empty message, or the immediate data of a write.
    #[inline(never)]
    fn post_empty(&self) -> Result<Number, Box<PostError<SgList>>> {
        if !self.fork_detector.is_same_process() {
            return self.refused_in_child(SgList::NONE);
        }
        let mut state = self.state.lock();
        match state.reserve(&self.parts) {
            Ok(slot) => Ok(slot.push(self.parts.index, SgList::NONE).into()),
            Err(reason) => refused(reason, SgList::NONE),
        }
    }

    /// Posts memory, and returns the request's number.
    #[inline(never)]
    fn post_one(&self, sg_list: SgList) -> Result<Number, Box<PostError<SgList>>> {
        self.post_fast_path(sg_list, |this, state, sg_list| {
            if sg_list.is_none() {
                this.post_empty()
            } else {
                this.post_after_refresh(state, sg_list)
            }
        })
    }

    /// Posts memory if it is a part of a buffer and there is known to be room for it. Posts it
    /// by `otherwise` if not. Calls nothing else, so that few registers are saved.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each request")]
    fn post_fast_path(
        &self,
        sg_list: SgList,
        otherwise: impl FnOnce(
            &Self,
            Option<MutexGuard<'_, State>>,
            SgList,
        ) -> Result<Number, Box<PostError<SgList>>>,
    ) -> Result<Number, Box<PostError<SgList>>> {
        if !self.is_fast_path(&sg_list) || !self.fork_detector.is_same_process() {
            return otherwise(self, None, sg_list);
        }
        let Some(mut state) = self.state.try_lock() else {
            return otherwise(self, None, sg_list);
        };
        let State { ring, posted } = &mut *state;
        let (vacancy, sge) = match (posted.known_vacancy(), sg_list.as_buffer()) {
            // Checked under the lock, so that no request is added after a flush.
            (Some(vacancy), Some(sge))
                if !self.parts.qp_status.is_broken() && self.parts.completions.reserve_one() =>
            {
                (vacancy, sge.sge())
            }
            _ => return otherwise(self, Some(state), sg_list),
        };
        let (queue, number) = (self.parts.index, vacancy.number());
        let id = RequestId { queue, number }.to_device();
        // First: the device may complete the request as soon as it is in its queue.
        ring.push_one(id, sge, || vacancy.fill(sg_list, ()));
        Ok(number.into())
    }

    /// Posts a request that is not plain, or after it has looked for room.
    #[cold]
    #[inline(never)]
    fn post_after_refresh(
        &self,
        state: Option<MutexGuard<'_, State>>,
        sg_list: SgList,
    ) -> Result<Number, Box<PostError<SgList>>> {
        let Some(mut state) = state else {
            return self.post_any(sg_list);
        };
        let State { ring, posted } = &mut *state;
        posted.has_room(1, || ring.room(1));
        drop(state);
        self.post_fast_path(sg_list, |this, state, sg_list| {
            drop(state);
            this.post_any(sg_list)
        })
    }

    /// Whether its only entry is a part of a buffer and valid.
    #[inline]
    fn is_fast_path(&self, sg_list: &SgList) -> bool {
        sg_list.as_buffer().is_some_and(|sge| {
            sge.domain_id() == self.fast_path_domain && u64::from(sge.len()) <= MAX_MESSAGE
        })
    }

    /// Checks memory to receive into.
    ///
    /// # Errors
    /// Why it is invalid.
    #[inline]
    fn check(&self, sg_list: &SgList) -> Result<(), &'static str> {
        if sg_list.is_none() || self.is_fast_path(sg_list) {
            return Ok(());
        }
        check_writable(&self.parts.domain, self.max_sges, sg_list)
    }

    /// Posts memory of any entries.
    #[inline(never)]
    fn post_any(&self, sg_list: SgList) -> Result<Number, Box<PostError<SgList>>> {
        if let Err(reason) = self.check(&sg_list) {
            return refused(reason, sg_list);
        }
        if !self.fork_detector.is_same_process() {
            return self.refused_in_child(sg_list);
        }
        let mut state = self.state.lock();
        let vacancy = match state.reserve(&self.parts) {
            Ok(vacancy) => vacancy,
            Err(reason) => return refused(reason, sg_list),
        };
        Ok(vacancy.push(self.parts.index, sg_list).into())
    }

    /// Posts memory for several requests; all or none.
    pub(crate) fn post_all(&self, memory: &mut Vec<SgList>) -> Result<WorkIds> {
        for sg_list in &*memory {
            self.check(sg_list).map_err(invalid)?;
        }
        if !self.fork_detector.is_same_process() {
            return Err(self.parts.domain.context().closed_error());
        }
        let mut state = self.state.lock();
        let first = state.posted.next();
        state
            .reserve_all(&self.parts, memory.len())
            .map_err(invalid)?;
        let State { ring, posted } = &mut *state;
        for sg_list in memory.drain(..) {
            if let Some(vacancy) = posted.known_vacancy() {
                ReservedSlot { ring, vacancy }.push(self.parts.index, sg_list);
            }
        }
        let next = state.posted.next();
        Ok(WorkIds::new(self.parts.queue, first, next))
    }

    /// How many requests were not reported as complete.
    pub(crate) fn outstanding(&self) -> u32 {
        if !self.fork_detector.is_same_process() {
            return 0;
        }
        // In this order: a request that completes meanwhile counts at least once.
        let posted = self.state.lock().posted.len();
        posted + self.parts.qp_status.unreported_receives()
    }

    #[cold]
    fn refused_in_child(&self, sg_list: SgList) -> Result<Number, Box<PostError<SgList>>> {
        let gone = self.parts.domain.context().closed_error();
        Err(Box::new(PostError::new(gone, sg_list)))
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "it was widened")]
    fn work(&self, number: Number) -> WorkId {
        WorkId {
            queue: self.parts.queue,
            number: number as u32,
        }
    }

    /// Waits until all callers that post have added their requests, or will find that requests
    /// are refused.
    pub(crate) fn wait_for_posters(&self) {
        drop(self.state.lock());
    }

    /// As a caller that posts does.
    #[cfg(test)]
    pub(crate) fn lock(&self) -> impl Sized + use<'_> {
        self.state.lock()
    }
}

/// Room for one request in both rings.
struct ReservedSlot<'a> {
    ring: &'a mut ReceiveRings,
    vacancy: Vacancy<'a, ()>,
}

impl ReservedSlot<'_> {
    /// Adds a request, and returns its number.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each request")]
    fn push(self, queue: QueueIndex, sg_list: SgList) -> u32 {
        let Self { ring, vacancy } = self;
        let number = vacancy.number();
        let id = RequestId { queue, number }.to_device();
        // First: the device may complete the request as soon as it is in its queue.
        if let Some(part) = sg_list.as_buffer() {
            let sge = part.sge();
            ring.push_one(id, sge, || vacancy.fill(sg_list, ()));
        } else if sg_list.is_none() {
            vacancy.fill(sg_list, ());
            ring.push_empty(id);
        } else {
            let mut entries = Entries::new();
            let entries = entries.of(&sg_list);
            vacancy.fill(sg_list, ());
            ring.push(id, entries);
        }
        number
    }
}

impl State {
    /// Does the checks that need the lock, and reserves a completion queue entry.
    #[inline]
    fn reserve(&mut self, parts: &ReceiveParts) -> Result<ReservedSlot<'_>, &'static str> {
        // Checked under the lock, so that no request is added after a flush.
        if parts.qp_status.is_broken() {
            return Err(BROKEN);
        }
        let Some(slot) = self.vacancy() else {
            return Err(QUEUE_FULL);
        };
        if parts.completions.reserve_one() {
            Ok(slot)
        } else {
            Err(COMPLETION_QUEUE_FULL)
        }
    }

    /// As [`reserve`](Self::reserve), for several requests.
    fn reserve_all(&mut self, parts: &ReceiveParts, requests: usize) -> Result<(), &'static str> {
        if parts.qp_status.is_broken() {
            return Err(BROKEN);
        }
        let Ok(count) = u32::try_from(requests) else {
            return Err(QUEUE_FULL);
        };
        let Self { ring, posted } = self;
        if !posted.has_room(count, || ring.room(requests)) {
            return Err(QUEUE_FULL);
        }
        if parts.completions.reserve(count, 0) {
            Ok(())
        } else {
            Err(COMPLETION_QUEUE_FULL)
        }
    }

    fn vacancy(&mut self) -> Option<ReservedSlot<'_>> {
        let Self { ring, posted } = self;
        let vacancy = posted.vacancy(|| ring.room(1))?;
        Some(ReservedSlot { ring, vacancy })
    }
}

const BROKEN: &str = "the queue pair is in the error state";
pub(super) const COMPLETION_QUEUE_FULL: &str =
    "the completion queue has no room left for its completion";
pub(super) const QUEUE_FULL: &str = "the receive queue is full";

#[cold]
pub(super) fn refused<T>(
    reason: &'static str,
    sg_list: SgList,
) -> Result<T, Box<PostError<SgList>>> {
    Err(Box::new(PostError::new(invalid(reason), sg_list)))
}

#[cold]
fn invalid(reason: &'static str) -> Error {
    Error::invalid(Operation::Receive, reason)
}
