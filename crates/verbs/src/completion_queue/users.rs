//! The work queues that use a completion queue.

use std::collections::VecDeque;
use std::sync::Arc;

use rdmacm_abi::uverbs::WorkCompletion;
use rdmacm_core::QpType;

use super::CompletionQueue;
use super::credits::CqCredits;
use super::state::State;
use super::work_queues::SharedUser;
use crate::completion::WorkId;
use crate::memory::SgList;
use crate::request_id::{Queue, QueueIndex, RequestId};
use crate::work_queue::{AnyWorkQueue, QpStatus, Reported, SharedReceiveRing, WorkQueue};

impl CompletionQueue {
    /// Reserves an index for a work queue, until it is [dismissed](Self::dismiss); `None` if
    /// there are too many.
    pub(crate) fn reserve_index(&self) -> Option<QueueIndex> {
        self.state()?.queues.reserve()
    }

    /// Registers a work queue, whose completions arrive here.
    pub(crate) fn admit(&self, index: QueueIndex, queue: AnyWorkQueue) {
        if let Some(mut state) = self.state() {
            state.queues.insert(index, queue);
        }
    }

    /// Registers a shared receive queue, or one more queue pair of it. Reserves credits for
    /// all its requests; returns `false` if there are too few.
    pub(crate) fn admit_shared(&self, queue: SharedReceiveRing, credits: u32) -> bool {
        let srq = queue.number();
        let Some(mut state) = self.state() else {
            return false;
        };
        if state.queues.join(srq) {
            return true;
        }
        let reserved = self.reserve(credits, 0);
        if reserved {
            state.queues.insert_shared(srq, queue, credits);
        }
        reserved
    }

    /// Registers the number of a queue pair of a shared queue, before the queue pair receives
    /// anything, and the status that a failed request breaks.
    pub(crate) fn admit_number(
        &self,
        index: QueueIndex,
        number: u32,
        qp_type: QpType,
        status: &Arc<QpStatus>,
    ) {
        let Queue::Shared(srq) = index.queue() else {
            return;
        };
        let Some(mut state) = self.state() else {
            return;
        };
        let status = Arc::downgrade(status);
        let user = SharedUser {
            number,
            qp_type,
            status,
        };
        if state.queues.add_user(srq, user) {
            // The kernel has destroyed the queue pair that had the number, but it is not dismissed
            // yet: what there is was completed by that one.
            let memory = self.take_completed(&mut state, srq, number);
            state.queues.set_aside(srq, number, memory);
        }
    }

    /// Removes a queue pair's work queue, after the kernel has destroyed the queue pair, and
    /// returns the memory of its requests. Discards their completions. Requests of a shared queue
    /// are its own if they have completed with its number, which siw may give to the next queue
    /// pair (`siw_qp_add`). A queue pair that was not created has no number.
    pub(crate) fn dismiss(&self, index: QueueIndex, number: Option<u32>) -> Vec<(WorkId, SgList)> {
        let Some(mut state) = self.state() else {
            return Vec::new();
        };
        match index.queue() {
            Queue::Own(_) => self.dismiss_own(&mut state, index),
            Queue::Shared(srq) => {
                let memory = number.map(|number| self.dismiss_number(&mut state, srq, number));
                let mut memory = memory.unwrap_or_default();
                memory.append(&mut self.leave_shared(&mut state, srq));
                memory
            }
        }
    }

    /// Gives up the work queue of a queue pair that the kernel has not destroyed, and returns the
    /// memory of its requests. They may still complete: they keep their credits, and no other
    /// queue gets the index. A shared queue stays as it is.
    pub(crate) fn abandon(&self, index: QueueIndex) -> Vec<(WorkId, SgList)> {
        let (Queue::Own(_), Some(mut state)) = (index.queue(), self.state()) else {
            return Vec::new();
        };
        self.take_out_others(&mut state, index);
        state.forget_reports(index);
        let kept = CqCredits::new(0);
        let queue = state.queues.get(index);
        let memory = queue.map(|queue| queue.take_all(&kept));
        state.queues.retire(index);
        memory.unwrap_or_default()
    }

    fn dismiss_own(&self, state: &mut State, index: QueueIndex) -> Vec<(WorkId, SgList)> {
        self.take_out_others(state, index);
        state.forget_reports(index);
        let queue = state.queues.get(index);
        let memory = queue.map(|queue| queue.take_all(&self.0.credits));
        state.queues.remove_own(index);
        memory.unwrap_or_default()
    }

    /// The memory of the requests of a shared queue that a queue pair of this number has completed.
    fn dismiss_number(&self, state: &mut State, srq: u32, number: u32) -> Vec<(WorkId, SgList)> {
        let (mut memory, is_taken) = state.queues.remove_number(srq, number);
        if !is_taken {
            memory.append(&mut self.take_completed(state, srq, number));
        }
        memory
    }

    /// Discards the completions of a shared queue's requests by the queue pair of this number, which
    /// is reset. Keeps the memory for it.
    pub(crate) fn discard_completed(&self, index: QueueIndex, number: u32) {
        let (Queue::Shared(srq), Some(mut state)) = (index.queue(), self.state()) else {
            return;
        };
        let memory = self.take_completed(&mut state, srq, number);
        state.queues.set_aside(srq, number, memory);
    }

    /// One queue pair less uses a shared queue. Returns what is left of the last one's requests.
    fn leave_shared(&self, state: &mut State, srq: u32) -> Vec<(WorkId, SgList)> {
        let Some((mut queue, credits)) = state.queues.remove_shared(srq) else {
            return Vec::new();
        };
        let index = QueueIndex::shared(srq);
        self.take_out(state);
        state.forget_reports(index);
        // Other queue pairs may use the shared queue on other completion queues: the memory
        // does not stay there.
        let memory = self.complete_all(queue.get(), state.take_own(index));
        self.release(credits);
        memory
    }

    /// Takes the completions of a shared queue's requests by a queue pair of this number, and
    /// returns the memory of the requests.
    fn take_completed(&self, state: &mut State, srq: u32, number: u32) -> Vec<(WorkId, SgList)> {
        let index = QueueIndex::shared(srq);
        self.take_out(state);
        let completions = state.take_own_of(index, number);
        let queue = state.queues.get(index);
        let memory = queue.map(|queue| self.complete_all(queue, completions));
        memory.unwrap_or_default()
    }

    /// Completes requests of a shared queue, and returns their memory.
    fn complete_all(
        &self,
        queue: &mut dyn WorkQueue,
        completions: VecDeque<WorkCompletion>,
    ) -> Vec<(WorkId, SgList)> {
        let completed = completions.into_iter().filter_map(|wc| {
            let number = RequestId::from_device(wc.id).number;
            match queue.complete(&self.0.credits, number, &wc)? {
                Reported::One(completion) => Some((completion.work, completion.sg_list)),
                _ => None,
            }
        });
        completed.collect()
    }

    /// Reports the outstanding requests of a work queue as flushed, after the completions of
    /// the device.
    pub(crate) fn flush(&self, index: QueueIndex) {
        let Some(mut state) = self.state() else {
            return;
        };
        self.take_out(&mut state);
        let own = state.take_own(index);
        let Some(queue) = state.queues.get(index) else {
            return;
        };
        let mut stray = None;
        for wc in own {
            let number = RequestId::from_device(wc.id).number;
            if !queue.record(&self.0.credits, number, &wc) {
                stray = Some(wc.id);
            }
        }
        queue.flush();
        state.stray = state.stray.or(stray);
        state.reporting.push_back(index);
        state.is_behind = true;
    }

    /// Takes all completions out of the ring.
    fn take_out(&self, state: &mut State) {
        self.take_out_if(state, |_| true);
    }

    /// Takes all completions out of the ring, and discards those of a queue.
    fn take_out_others(&self, state: &mut State, index: QueueIndex) {
        state.take_own(index);
        self.take_out_if(state, |wc| RequestId::from_device(wc.id).queue != index);
    }

    /// Takes all completions out of the ring, and discards those that are not to be kept.
    fn take_out_if(&self, state: &mut State, keeps: impl Fn(&WorkCompletion) -> bool) {
        while let Some(wc) = self.pop_rest(&mut state.ring) {
            if keeps(&wc) {
                state.taken.push_back(wc);
                state.is_behind = true;
            }
        }
        self.note_next_slot(&state.ring);
    }

    /// Discards the requests of a work queue and their completions, as the device does.
    pub(crate) fn discard(&self, index: QueueIndex) {
        let Some(mut state) = self.state() else {
            return;
        };
        self.take_out_others(&mut state, index);
        state.forget_reports(index);
        if let Some(queue) = state.queues.get(index) {
            queue.discard(&self.0.credits);
        }
    }
}
