//! The work queues that use a completion queue.

use super::CompletionQueue;
use super::state::State;
use crate::completion::WorkId;
use crate::memory::SgList;
use crate::provider::CompletionRing;
use crate::request_id::{Queue, QueueIndex, RequestId};
use crate::work_queue::{AnyWorkQueue, Reported, SharedReceiveRing};

impl CompletionQueue {
    /// Reserves an index for a work queue, until it is [dismissed](Self::dismiss); `None` if
    /// there are too many.
    pub(crate) fn reserve_index(&self) -> Option<QueueIndex> {
        self.state().queues.reserve()
    }

    /// Registers a work queue, whose completions arrive here.
    pub(crate) fn admit(&self, index: QueueIndex, queue: AnyWorkQueue) {
        self.state().queues.insert(index, queue);
    }

    /// Registers a shared receive queue, or one more queue pair of it. Reserves credits for
    /// all its requests; returns `false` if there are too few.
    pub(crate) fn admit_shared(&self, token: u32, queue: SharedReceiveRing, credits: u32) -> bool {
        let mut state = self.state();
        if state.queues.join(token) {
            return true;
        }
        let reserved = self.reserve(credits, 0);
        if reserved {
            state.queues.insert_shared(token, queue, credits);
        }
        reserved
    }

    /// Removes a queue pair's work queue, after the kernel has destroyed the queue pair, and
    /// returns the memory of its requests. Discards its completions, but for those of a shared
    /// queue that the last queue pair leaves.
    pub(crate) fn dismiss(&self, index: QueueIndex) -> Vec<(WorkId, SgList)> {
        let mut state = self.state();
        let Queue::Shared(token) = index.queue() else {
            let state = &mut *state;
            self.take_out(state);
            state.forget_reports(index);
            state.take_own(index);
            let queue = state.queues.get(index);
            let memory = queue.map(|queue| queue.take_all(&self.0.credits));
            state.queues.remove_own(index);
            return memory.unwrap_or_default();
        };
        let Some((mut queue, credits)) = state.queues.remove_shared(token) else {
            return Vec::new();
        };
        self.take_out(&mut state);
        state.forget_reports(index);
        // Other queue pairs may use the shared queue on other completion queues: the memory
        // does not stay there.
        let completions = state.take_own(index).into_iter().filter_map(|wc| {
            let number = RequestId::from_device(wc.id).number;
            match queue.get().complete(&self.0.credits, number, &wc)? {
                Reported::One(completion) => Some((completion.work, completion.sg_list)),
                _ => None,
            }
        });
        let memory = completions.collect();
        self.release(credits);
        memory
    }

    /// Reports the outstanding requests of a work queue as flushed, after the completions of
    /// the device.
    pub(crate) fn flush(&self, index: QueueIndex) {
        let mut state = self.state();
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
        if self.context().is_in_child() {
            return;
        }
        while let Some(wc) = state.ring.pop() {
            state.taken.push_back(wc);
            state.is_behind = true;
        }
    }

    /// Discards the requests of a work queue and their completions, as the device does.
    pub(crate) fn discard(&self, index: QueueIndex) {
        let mut state = self.state();
        self.take_out(&mut state);
        state.take_own(index);
        state.forget_reports(index);
        if let Some(queue) = state.queues.get(index) {
            queue.discard(&self.0.credits);
        }
    }
}
