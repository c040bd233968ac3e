//! Shared receive queues.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rdmacm_abi::uverbs::WorkCompletion;

use super::entries::{Entries, MAX_SGES, check_writable};
use super::receive::{QUEUE_FULL, refused};
use super::receive_slots::ReceiveSlots;
use super::{Reported, WorkQueue, context_closed};
use crate::completion::{Completion, Report, WorkId, WorkKind};
use crate::completion_queue::CqCredits;
use crate::error::PostError;
use crate::fork_detector::ForkDetector;
use crate::memory::SgList;
use crate::protection_domain::ProtectionDomain;
use crate::provider::{ReceiveRing, ReceiveRings};
use crate::request_id::{QueueIndex, RequestId};

/// The requests of a shared receive queue. They complete in any order, and on the completion
/// queues of all queue pairs that use it, so both halves take one lock. Clones are the same
/// queue.
///
/// Completion queue entries were reserved when its queue pairs were created, and it outlives
/// their failures.
#[derive(Clone, Debug)]
pub(crate) struct SharedReceiveRing(Arc<Created>);

#[derive(Debug)]
struct Created {
    number: u32,
    capacity: usize,
    max_sges: usize,
    domain: ProtectionDomain,
    fork_detector: ForkDetector,
    state: Mutex<State>,
}

impl Drop for Created {
    fn drop(&mut self) {
        if !self.fork_detector.is_same_process() {
            // A thread of the parent may have been amid a change.
            let State { slots, failed, .. } = self.state.get_mut();
            std::mem::forget(std::mem::take(slots));
            std::mem::forget(std::mem::take(failed));
        }
    }
}

#[derive(Debug)]
struct State {
    ring: ReceiveRings,
    slots: ReceiveSlots,
    /// Of the device that is gone: completed requests that were not reported yet.
    failed: Vec<(u32, SgList)>,
}

impl SharedReceiveRing {
    pub(crate) fn new(
        number: u32,
        max_requests: u32,
        max_sges: u32,
        domain: ProtectionDomain,
        ring: ReceiveRings,
    ) -> Self {
        let capacity = max_requests.min(ring.capacity()) as usize;
        Self(Arc::new(Created {
            number,
            capacity,
            max_sges: max_sges.min(ring.max_sges()).min(MAX_SGES) as usize,
            fork_detector: domain.context().uverbs().fork_detector(),
            domain,
            state: Mutex::new(State {
                ring,
                slots: ReceiveSlots::new(capacity),
                failed: Vec::new(),
            }),
        }))
    }

    /// How many requests it holds.
    pub(crate) fn capacity(&self) -> u32 {
        // It was a `u32`.
        u32::try_from(self.0.capacity).unwrap_or(u32::MAX)
    }

    /// By which completion queues know it.
    pub(crate) fn number(&self) -> u32 {
        self.0.number
    }

    /// Its index in completion queues.
    pub(crate) fn index(&self) -> QueueIndex {
        QueueIndex::shared(self.0.number)
    }

    /// Posts memory to receive into.
    pub(crate) fn post(&self, sg_list: SgList) -> Result<WorkId, Box<PostError<SgList>>> {
        let domain = &self.0.domain;
        if let Err(reason) = check_writable(domain, self.0.max_sges, &sg_list) {
            return refused(reason, sg_list);
        }
        if !self.0.fork_detector.is_same_process() {
            let gone = domain.context().closed_error();
            return Err(Box::new(PostError::new(gone, sg_list)));
        }
        let mut state = self.0.state.lock();
        let next = state.slots.next().filter(|_| {
            let has_room = state.slots.len() < self.0.capacity;
            has_room && state.ring.has_room()
        });
        let Some(number) = next else {
            return refused(QUEUE_FULL, sg_list);
        };
        let id = RequestId {
            queue: self.index(),
            number,
        };
        let mut entries = Entries::new();
        state.ring.push(id.to_device(), entries.of(&sg_list));
        state.slots.push(sg_list);
        Ok(self.work(number))
    }

    /// What its lock guards; `None` in a forked child, as of a completion queue.
    fn state(&self) -> Option<MutexGuard<'_, State>> {
        self.0
            .fork_detector
            .is_same_process()
            .then(|| self.0.state.lock())
    }

    /// The memory of all requests, after the kernel has destroyed the queue.
    pub(crate) fn take_all(&self) -> Vec<(WorkId, SgList)> {
        let Some(mut state) = self.state() else {
            return Vec::new();
        };
        let mut all = std::mem::take(&mut state.failed);
        all.extend(state.slots.take_all());
        let all = all.into_iter();
        all.map(|(number, sg_list)| (self.work(number), sg_list))
            .collect()
    }

    fn work(&self, number: u32) -> WorkId {
        let queue = WorkId::shared_queue(self.0.number);
        WorkId { queue, number }
    }

    fn completion(&self, number: u32, sg_list: SgList, wc: &WorkCompletion) -> Completion {
        Completion {
            work: self.work(number),
            sg_list,
            qp_number: wc.qp_number,
            report: Report::of(WorkKind::Receive, wc),
        }
    }
}

/// Requests of a shared queue belong to no queue pair: they are neither flushed nor discarded
/// with one.
impl WorkQueue for SharedReceiveRing {
    fn complete(&mut self, _: &CqCredits, number: u32, wc: &WorkCompletion) -> Option<Reported> {
        let sg_list = self.state()?.slots.take(number)?;
        Some(Reported::One(self.completion(number, sg_list, wc)))
    }

    fn record(&mut self, _: &CqCredits, _: u32, _: &WorkCompletion) -> bool {
        false
    }

    fn report(&mut self, _: &CqCredits) -> Reported {
        let Some(mut state) = self.state() else {
            return Reported::Nothing;
        };
        let Some((number, sg_list)) = state.failed.pop() else {
            return Reported::Nothing;
        };
        let completion = self.completion(number, sg_list, &context_closed(0));
        if state.failed.is_empty() {
            Reported::One(completion)
        } else {
            Reported::More(completion)
        }
    }

    fn fail_all(&mut self, _: &CqCredits) {
        let Some(mut state) = self.state() else {
            return;
        };
        let mut taken = state.slots.take_all();
        // `report` takes the last one, which is to be the oldest.
        taken.reverse();
        taken.append(&mut state.failed);
        state.failed = taken;
    }

    fn flush(&mut self) {}

    fn discard(&mut self, _: &CqCredits) {}

    fn take_all(&mut self, _: &CqCredits) -> Vec<(WorkId, SgList)> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use rdmacm_core::QpType;

    use super::*;
    use crate::fork_detector::tests::child_ends_while_locked;
    use crate::provider::stub::Stub;
    use crate::queue_pair::QueuePair;
    use crate::shared_receive_queue::SrqOptions;

    #[test]
    fn a_child_waits_for_no_thread_that_posts() {
        let context = Stub::new(false).open();
        let domain = context.create_protection_domain().unwrap();
        let (max_wr, max_sge) = (4, 1);
        let shared = SrqOptions { max_wr, max_sge }.create(&domain).unwrap();
        shared.post_receive(domain.allocate(8).unwrap()).unwrap();
        let options = QueuePair::options(QpType::RC).shared_receive_queue(&shared);
        let queue_pair = options.create(&context).unwrap();
        let queue = queue_pair.recv_cq().clone();
        let ring = shared.queue();
        let has_ended = child_ends_while_locked(
            || ring.0.state.lock(),
            || {
                let refused = shared.post_receive(SgList::NONE).unwrap_err();
                assert!(refused.error.is_context_closed());
                assert!(queue.poll().unwrap_err().is_context_closed());
                assert!(queue_pair.destroy().is_empty());
                drop((queue, shared, options, domain, context));
            },
        );
        assert!(has_ended);
    }
}
