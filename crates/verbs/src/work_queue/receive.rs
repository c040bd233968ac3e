//! Receive queues, of one queue pair or shared.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rdmacm_abi::uverbs::{Sge as AbiSge, WcStatus, WorkCompletion};

use super::receive_slots::ReceiveSlots;
use super::send::MAX_MESSAGE;
use super::{QpStatus, Reported, WorkQueue, flushed, gone, take_discarded, take_flushed};
use crate::completion::{Completion, WorkId, received};
use crate::completion_queue::CompletionQueue;
use crate::error::{Error, PostError};
use crate::memory::{SgList, Sge};
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;
use crate::provider::ReceiveRing;
use crate::request_id::{QueueIndex, RequestId};

/// A receive queue and its posted requests.
#[derive(Debug)]
pub(crate) struct ReceiveQueue {
    token: u32,
    index: QueueIndex,
    capacity: usize,
    max_sges: usize,
    domain: ProtectionDomain,
    owner: Option<OwningQueuePair>,
    state: Mutex<State>,
}

/// The queue pair of a queue that is not shared. For a shared queue, completion queue
/// entries were reserved when its queue pairs were created, and it outlives their failures.
#[derive(Debug)]
pub(crate) struct OwningQueuePair {
    /// The queue pair's number.
    pub(crate) number: u32,
    /// Reserves an entry for the completion of each request.
    pub(crate) completions: CompletionQueue,
    pub(crate) qp_status: Arc<QpStatus>,
}

#[derive(Debug)]
struct State {
    ring: Box<dyn ReceiveRing>,
    slots: ReceiveSlots,
    /// Completed requests that were not reported yet.
    unreported: VecDeque<Completion>,
    /// The requests that a reset has discarded. The device may still write to their memory.
    discarded: Vec<(u32, SgList)>,
    /// The requests that were completed as flushed. The device may still complete them, so
    /// their completion queue entries stay reserved.
    flushed: Vec<u32>,
}

pub(crate) struct ReceiveParts {
    pub(crate) token: u32,
    /// Its index in the completion queues.
    pub(crate) index: QueueIndex,
    pub(crate) max_requests: u32,
    pub(crate) max_sges: u32,
    pub(crate) domain: ProtectionDomain,
    pub(crate) owner: Option<OwningQueuePair>,
    pub(crate) ring: Box<dyn ReceiveRing>,
}

impl ReceiveQueue {
    pub(crate) fn new(parts: ReceiveParts) -> Self {
        let capacity = parts.max_requests.min(parts.ring.capacity()) as usize;
        Self {
            token: parts.token,
            index: parts.index,
            capacity,
            max_sges: parts.max_sges.min(parts.ring.max_sges()) as usize,
            domain: parts.domain,
            owner: parts.owner,
            state: Mutex::new(State {
                ring: parts.ring,
                slots: ReceiveSlots::new(capacity),
                unreported: VecDeque::new(),
                discarded: Vec::new(),
                flushed: Vec::new(),
            }),
        }
    }

    pub(crate) fn index(&self) -> QueueIndex {
        self.index
    }

    /// How many requests it holds.
    pub(crate) fn capacity(&self) -> u32 {
        // It was a `u32`.
        u32::try_from(self.capacity).unwrap_or(u32::MAX)
    }

    /// Posts memory to receive into.
    pub(crate) fn post(&self, sg_list: SgList) -> Result<WorkId, PostError<SgList>> {
        match self.check(&sg_list) {
            Ok(()) => self.push(sg_list),
            Err(reason) => Err(refused(reason, sg_list)),
        }
    }

    fn check(&self, sg_list: &SgList) -> Result<(), &'static str> {
        if sg_list.len() > self.max_sges {
            Err("it has more scatter/gather entries than the queue allows")
        } else if sg_list.iter().any(|sge| !sge.is_of(&self.domain)) {
            Err("its memory is registered in another protection domain")
        } else if !sg_list.iter().all(Sge::is_writable) {
            Err("its memory is not registered for writing")
        } else if sg_list.iter().map(|sge| sge.len() as u64).sum::<u64>() > MAX_MESSAGE {
            Err("it is longer than a message can be, 2 GiB less a byte")
        } else {
            Ok(())
        }
    }

    fn push(&self, sg_list: SgList) -> Result<WorkId, PostError<SgList>> {
        let uverbs = self.domain.context().uverbs();
        if uverbs.is_in_child() {
            return Err(PostError::new(uverbs.gone(), sg_list));
        }
        let mut state = self.state();
        // Checked under the lock, so that no request is added after a flush.
        let owner = self.owner.as_ref();
        if owner.is_some_and(|owner| owner.qp_status.is_broken()) {
            return Err(refused("the queue pair is in the error state", sg_list));
        }
        let next = state.slots.next().filter(|_| {
            let has_room = state.slots.len() < self.capacity;
            has_room && state.ring.has_room()
        });
        let Some(number) = next else {
            return Err(refused("the receive queue is full", sg_list));
        };
        if !self.reserve() {
            return Err(refused(COMPLETION_QUEUE_FULL, sg_list));
        }
        let one: [AbiSge; 1];
        let many: Vec<AbiSge>;
        let sges: &[AbiSge] = if let [sge] = &*sg_list {
            one = [sge.sge()];
            &one
        } else {
            // siw fails on empty entries (`siw_unref_mem_sgl`).
            let sg_list = sg_list.iter().filter(|sge| !sge.is_empty());
            many = sg_list.map(Sge::sge).collect();
            &many
        };
        let id = RequestId {
            queue: self.index,
            number,
        };
        state.ring.push(id.to_device(), sges);
        state.slots.push(sg_list);
        Ok(self.work(number))
    }

    fn work(&self, number: u32) -> WorkId {
        let queue = self.token;
        WorkId { queue, number }
    }

    fn reserve(&self) -> bool {
        self.owner
            .as_ref()
            .is_none_or(|owner| owner.completions.reserve(1, 0))
    }

    fn release(&self, requests: usize) {
        if let Some(owner) = &self.owner {
            // No more than the capacity of the queue.
            let requests = u32::try_from(requests).unwrap_or(u32::MAX);
            owner.completions.release(requests);
        }
    }

    /// Discards the requests, as the device does. Keeps their memory.
    pub(crate) fn reset(&self) {
        let mut state = self.state();
        state.unreported.clear();
        let taken = state.slots.take_all();
        self.release(taken.len());
        state.discarded.extend(taken);
    }

    /// The memory of all requests, after the kernel has destroyed the queue.
    pub(crate) fn take_all(&self) -> Vec<(WorkId, SgList)> {
        let mut state = self.state();
        let flushed = std::mem::take(&mut state.flushed);
        let unreported = std::mem::take(&mut state.unreported).into_iter();
        let mut posted = std::mem::take(&mut state.discarded);
        let taken = state.slots.take_all();
        drop(state);
        self.release(flushed.len() + taken.len());
        posted.extend(taken);
        let posted = posted.into_iter();
        let posted = posted.map(|(number, sg_list)| (self.work(number), sg_list));
        let unreported = unreported.map(|completion| (completion.work, completion.sg_list));
        unreported.chain(posted).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn completion(&self, number: u32, sg_list: SgList, wc: &WorkCompletion) -> Completion {
        let work = self.work(number);
        if let (Some(owner), true) = (&self.owner, wc.status != WcStatus::SUCCESS) {
            owner.qp_status.set_broken();
        }
        Completion {
            work,
            queue_pair: wc.qp_number,
            result: received(work, wc),
            sg_list,
        }
    }

    /// The completed request, if there is one with this number.
    fn take(&self, state: &mut State, number: u32, wc: &WorkCompletion) -> Option<Completion> {
        let sg_list = state.slots.take(number)?;
        self.release(1);
        Some(self.completion(number, sg_list, wc))
    }

    /// Takes note of a completion of a request that was flushed or discarded; `false` if there
    /// is none.
    #[cold]
    fn record_late(&self, state: &mut State, number: u32) -> bool {
        if take_flushed(&mut state.flushed, number) {
            self.release(1);
            return true;
        }
        take_discarded(&mut state.discarded, number).is_some()
    }

    /// Completes all requests as the device would.
    fn complete_all(&self, state: &mut State, wc: &WorkCompletion) -> Vec<u32> {
        let taken = state.slots.take_all();
        let numbers = taken.iter().map(|(number, _)| *number).collect();
        for (number, sg_list) in taken {
            let completion = self.completion(number, sg_list, wc);
            state.unreported.push_back(completion);
        }
        numbers
    }

    /// The queue pair's number; 0 for a shared queue, whose requests belong to none.
    fn queue_pair(&self) -> u32 {
        self.owner.as_ref().map_or(0, |owner| owner.number)
    }
}

impl WorkQueue for ReceiveQueue {
    fn complete(
        &self,
        number: u32,
        wc: &WorkCompletion,
        report: &mut Option<Completion>,
    ) -> Reported {
        let mut state = self.state();
        let Some(completion) = self.take(&mut state, number, wc) else {
            return if self.record_late(&mut state, number) {
                Reported::All
            } else {
                Reported::NoRequest
            };
        };
        if state.unreported.is_empty() {
            *report = Some(completion);
            return Reported::All;
        }
        state.unreported.push_back(completion);
        state.report(report)
    }

    fn record(&self, number: u32, wc: &WorkCompletion) -> bool {
        let mut state = self.state();
        match self.take(&mut state, number, wc) {
            Some(completion) => {
                state.unreported.push_back(completion);
                true
            }
            None => self.record_late(&mut state, number),
        }
    }

    fn report(&self, report: &mut Option<Completion>) -> Reported {
        self.state().report(report)
    }

    fn flush(&self) {
        let mut state = self.state();
        let numbers = self.complete_all(&mut state, &flushed(self.queue_pair()));
        state.flushed.extend(numbers);
    }

    fn fail_all(&self) {
        let mut state = self.state();
        let numbers = self.complete_all(&mut state, &gone(self.queue_pair()));
        self.release(numbers.len());
    }
}

impl State {
    fn report(&mut self, report: &mut Option<Completion>) -> Reported {
        *report = self.unreported.pop_front();
        if self.unreported.is_empty() {
            Reported::All
        } else {
            Reported::More
        }
    }
}

pub(super) const COMPLETION_QUEUE_FULL: &str =
    "the completion queue has no room left for its completion";

fn refused(reason: &'static str, sg_list: SgList) -> PostError<SgList> {
    PostError::new(Error::invalid(Operation::Receive, reason), sg_list)
}
