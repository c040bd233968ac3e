//! What a completion queue holds.

use std::collections::VecDeque;

use rdmacm_abi::uverbs::WorkCompletion;

use super::CqCredits;
use super::work_queues::WorkQueues;
use crate::completion::Completion;
use crate::provider::CompletionRings;
use crate::request_id::{QueueIndex, RequestId};
use crate::work_queue::Reported;

/// What the lock of a completion queue guards.
#[derive(Debug)]
pub(super) struct State {
    pub(super) ring: CompletionRings,
    /// Taken out of the ring to reach the completions of another queue pair.
    pub(super) taken: VecDeque<WorkCompletion>,
    /// The work queues with more than one completed request to report.
    pub(super) reporting: VecDeque<QueueIndex>,
    /// The id of a completion without a request, reported by the next poll.
    pub(super) stray: Option<u64>,
    /// Whether there may be anything in the three fields before.
    pub(super) is_behind: bool,
    pub(super) queues: WorkQueues,
}

impl State {
    pub(super) fn new(ring: CompletionRings) -> Self {
        Self {
            ring,
            taken: VecDeque::new(),
            reporting: VecDeque::new(),
            stray: None,
            is_behind: false,
            queues: WorkQueues::default(),
        }
    }

    /// Drops nothing of it: it may have been copied while it was being changed.
    pub(super) fn leak(&mut self) {
        std::mem::forget(std::mem::take(&mut self.taken));
        std::mem::forget(std::mem::take(&mut self.reporting));
        std::mem::forget(std::mem::take(&mut self.queues));
    }

    /// The completion that a queue has reported, if it has; notes whether it has more.
    pub(super) fn reported(&mut self, queue: QueueIndex, reported: Reported) -> Option<Completion> {
        match reported {
            Reported::One(completion) => Some(completion),
            Reported::More(completion) => {
                self.reporting.push_back(queue);
                self.is_behind = true;
                Some(completion)
            }
            Reported::Nothing => None,
        }
    }

    /// Reports the next request of the queues that have more than one to report, if there are
    /// any.
    pub(super) fn next_reported(&mut self, credits: &CqCredits) -> Option<Completion> {
        while let Some(index) = self.reporting.front() {
            let queue = self.queues.get(*index);
            let reported = queue.map(|queue| queue.report(credits));
            if let Some(Reported::More(completion)) = reported {
                return Some(completion);
            }
            self.reporting.pop_front();
            if let Some(Reported::One(completion)) = reported {
                return Some(completion);
            }
        }
        None
    }

    /// The outstanding requests of all queues are reported as failed.
    pub(super) fn fail_all(&mut self, credits: &CqCredits) {
        for (index, queue) in self.queues.iter_mut() {
            queue.fail_all(credits);
            self.reporting.push_back(index);
        }
    }

    /// What a queue has to report is not reported.
    pub(super) fn forget_reports(&mut self, index: QueueIndex) {
        if !self.reporting.is_empty() {
            self.reporting.retain(|one| *one != index);
        }
    }

    /// Takes the completions of a work queue out of those that were taken from the ring.
    pub(super) fn take_own(&mut self, index: QueueIndex) -> VecDeque<WorkCompletion> {
        self.take_taken(|wc| RequestId::from_device(wc.id).queue == index)
    }

    /// As [`take_own`](Self::take_own), but only those of the queue pair with this number.
    pub(super) fn take_own_of(
        &mut self,
        index: QueueIndex,
        number: u32,
    ) -> VecDeque<WorkCompletion> {
        self.take_taken(|wc| wc.qp_number == number && RequestId::from_device(wc.id).queue == index)
    }

    fn take_taken(
        &mut self,
        is_own: impl FnMut(&WorkCompletion) -> bool,
    ) -> VecDeque<WorkCompletion> {
        if self.taken.is_empty() {
            return VecDeque::new();
        }
        let all = std::mem::take(&mut self.taken).into_iter();
        let (own, others) = all.partition(is_own);
        self.taken = others;
        own
    }
}
