//! Receive queues, of one queue pair or shared.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rdmacm_abi::uverbs::{Sge as AbiSge, WcStatus, WorkCompletion};

use super::send::MAX_MESSAGE;
use super::{QpStatus, WorkQueue, flushed, gone, take_discarded, take_flushed};
use crate::completion::{Completion, WorkId, WorkKind, result};
use crate::completion_queue::CompletionQueue;
use crate::error::{Error, PostError};
use crate::in_flight_map::InFlightMap;
use crate::memory::{SgList, Sge};
use crate::operation::Operation;
use crate::protection_domain::ProtectionDomain;
use crate::provider::ReceiveRing;

/// A receive queue and its posted requests.
#[derive(Debug)]
pub(crate) struct ReceiveQueue {
    token: u32,
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
    posted: InFlightMap<SgList>,
    /// The requests that a reset has discarded. The device may still write to their memory.
    discarded: Vec<(u32, SgList)>,
    /// The requests that were reported as flushed. The device may still complete them, so
    /// their completion queue entries stay reserved.
    flushed: Vec<u32>,
}

pub(crate) struct ReceiveParts {
    pub(crate) token: u32,
    pub(crate) max_requests: u32,
    pub(crate) max_sges: u32,
    pub(crate) domain: ProtectionDomain,
    pub(crate) owner: Option<OwningQueuePair>,
    pub(crate) ring: Box<dyn ReceiveRing>,
}

impl ReceiveQueue {
    pub(crate) fn new(parts: ReceiveParts) -> Self {
        Self {
            token: parts.token,
            capacity: parts.max_requests.min(parts.ring.capacity()) as usize,
            max_sges: parts.max_sges.min(parts.ring.max_sges()) as usize,
            domain: parts.domain,
            owner: parts.owner,
            state: Mutex::new(State {
                ring: parts.ring,
                posted: InFlightMap::default(),
                discarded: Vec::new(),
                flushed: Vec::new(),
            }),
        }
    }

    pub(crate) fn token(&self) -> u32 {
        self.token
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
        if state.posted.len() >= self.capacity || !state.ring.has_room() {
            return Err(refused("the receive queue is full", sg_list));
        }
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
        let work = WorkId {
            queue: self.token,
            number: state.posted.next(),
        };
        state.ring.push(work.to_number(), sges);
        state.posted.push(sg_list);
        Ok(work)
    }

    fn reserve(&self) -> bool {
        self.owner
            .as_ref()
            .is_none_or(|owner| owner.completions.reserve(1, 0))
    }

    fn release(&self, requests: usize) {
        if let Some(owner) = &self.owner {
            owner.completions.release(requests);
        }
    }

    /// Discards the requests, as the device does. Keeps their memory.
    pub(crate) fn reset(&self) {
        let mut state = self.state();
        let taken = state.posted.take_all();
        self.release(taken.len());
        state.discarded.extend(taken);
    }

    /// The memory of all requests, after the kernel has destroyed the queue.
    pub(crate) fn take_all(&self) -> Vec<(WorkId, SgList)> {
        let mut state = self.state();
        let flushed = std::mem::take(&mut state.flushed);
        let mut all = std::mem::take(&mut state.discarded);
        drop(state);
        self.release(flushed.len());
        all.extend(self.take_posted());
        let with_ids = all.into_iter().map(|(number, sg_list)| {
            let queue = self.token;
            (WorkId { queue, number }, sg_list)
        });
        with_ids.collect()
    }

    fn take_posted(&self) -> Vec<(u32, SgList)> {
        let taken = self.state().posted.take_all();
        self.release(taken.len());
        taken
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn completion(&self, number: u32, sg_list: SgList, wc: &WorkCompletion) -> Completion {
        let work = WorkId {
            queue: self.token,
            number,
        };
        if let (Some(owner), true) = (&self.owner, wc.status != WcStatus::SUCCESS) {
            owner.qp_status.set_broken();
        }
        Completion {
            work,
            queue_pair: wc.qp_number,
            result: result(WorkKind::Receive, work, wc),
            sg_list,
            earlier: Vec::new(),
        }
    }
}

impl WorkQueue for ReceiveQueue {
    fn complete(&self, number: u32, wc: &WorkCompletion, ready: &mut VecDeque<Completion>) -> bool {
        let mut state = self.state();
        let Some(sg_list) = state.posted.take(number) else {
            if take_flushed(&mut state.flushed, number) {
                self.release(1);
                return true;
            }
            return take_discarded(&mut state.discarded, number).is_some();
        };
        drop(state);
        self.release(1);
        ready.push_back(self.completion(number, sg_list, wc));
        true
    }

    fn flush(&self, ready: &mut VecDeque<Completion>) {
        let wc = flushed(self.owner.as_ref().map_or(0, |owner| owner.number));
        let mut state = self.state();
        let taken = state.posted.take_all();
        state
            .flushed
            .extend(taken.iter().map(|(number, _)| *number));
        drop(state);
        let taken = taken.into_iter();
        ready.extend(taken.map(|(number, sg_list)| self.completion(number, sg_list, &wc)));
    }

    fn fail_all(&self) -> Vec<Completion> {
        // A request of a shared queue belongs to no queue pair.
        let wc = gone(self.owner.as_ref().map_or(0, |owner| owner.number));
        let taken = self.take_posted().into_iter();
        let failed = taken.map(|(number, sg_list)| self.completion(number, sg_list, &wc));
        failed.collect()
    }
}

pub(super) const COMPLETION_QUEUE_FULL: &str =
    "the completion queue has no room left for its completion";

fn refused(reason: &'static str, sg_list: SgList) -> PostError<SgList> {
    PostError::new(Error::invalid(Operation::Receive, reason), sg_list)
}
