//! Polling for completions.

use std::sync::atomic::{Ordering, fence};

use rdmacm_abi::uverbs::{WcStatus, WorkCompletion};

use super::CompletionQueue;
use super::output_slots::{OutputSlots, Single, Spare, append};
use super::state::State;
use super::work_queues::WorkQueues;
use crate::completion::Completion;
use crate::error::{Error, Result};
use crate::provider::{CompletionRing, CompletionRings};
use crate::request_id::RequestId;
use crate::work_queue::AnyWorkQueue;

/// For how many completions memory is reserved at once.
const MOST_AT_ONCE: usize = 64;

impl CompletionQueue {
    /// Takes the oldest completion, without a system call. Source: `ibv_poll_cq(3)`.
    ///
    /// # Errors
    /// [`Error::ContextClosed`] after the device was removed and all outstanding requests were
    /// returned, and at once in a forked child, which has none of them; [`Error::Stray`] for a
    /// completion that belongs to no request.
    #[doc(alias = "ibv_poll_cq")]
    #[inline]
    pub fn poll(&self) -> Result<Option<Completion>> {
        // Put in place where it is created, and not moved any more.
        let mut polled = Ok(None);
        if self.0.fork_detector.is_same_process() {
            self.poll_one(&mut polled);
        } else {
            self.refuse_in_child(&mut polled);
        }
        polled
    }

    /// Whether there is a completion to [`poll`](Self::poll) for, without a system call. It costs
    /// less than a poll that finds nothing. It does not notice by itself that the device was
    /// removed: poll now and then as well. `true` if a poll returns an error.
    #[must_use]
    #[inline(never)]
    pub fn has_completions(&self) -> bool {
        let Some(state) = self.state() else {
            return true;
        };
        state.is_behind || self.context().uverbs().is_closed() || state.ring.has_any()
    }

    #[cold]
    #[inline(never)]
    fn refuse_in_child(&self, into: &mut Result<Option<Completion>>) {
        *into = Err(self.context().closed_error());
    }

    /// Puts the oldest completion into `into`, which is `Ok(None)`. Not in a forked child.
    #[inline(never)]
    fn poll_one(&self, into: &mut Result<Option<Completion>>) {
        let mut state = self.0.state.lock();
        let taken = self.take_next(&mut state, &mut Single(into));
        if taken.count == 0 && !taken.is_all {
            self.poll_any(&mut state, into);
        }
    }

    /// Takes completions into `slots`, as long as the oldest one is the next to report, and
    /// alone, and there is a slot for it. Changes nothing otherwise.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each completion")]
    fn take_next(&self, state: &mut State, slots: &mut impl OutputSlots) -> Taken {
        if state.is_behind {
            return Taken::default();
        }
        let State { ring, queues, .. } = state;
        match ring {
            CompletionRings::Rxe(ring) => self.take_from(ring, queues, slots),
            CompletionRings::Siw(ring) => self.take_from(ring, queues, slots),
            #[cfg(test)]
            CompletionRings::Stub(ring) => self.take_from(ring, queues, slots),
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each completion")]
    fn take_from(
        &self,
        ring: &mut impl CompletionRing,
        queues: &mut WorkQueues,
        slots: &mut impl OutputSlots,
    ) -> Taken {
        let uverbs = self.context().uverbs();
        let is_closed = || {
            // What was read before may be the zeros of a replaced ring only if it is closed.
            fence(Ordering::Acquire);
            uverbs.is_closed()
        };
        let mut count = 0;
        loop {
            let Some((_, oldest)) = ring.oldest() else {
                let is_all = !is_closed();
                return Taken { count, is_all };
            };
            // The next ones are of the same queue, most of the time.
            let index = RequestId::from_device(oldest.id).queue;
            let taken = match queues.own(index) {
                Some(AnyWorkQueue::Send(queue)) => queue.take_next(index, ring, slots, is_closed),
                Some(AnyWorkQueue::Receive(queue)) => {
                    queue.take_next(index, ring, slots, is_closed)
                }
                Some(AnyWorkQueue::Shared(_)) | None => 0,
            };
            if taken == 0 {
                let is_all = false;
                return Taken { count, is_all };
            }
            self.note_next_slot(ring);
            // Last: other requests may then be posted that complete at the same places.
            self.0.credits.release(taken);
            count += taken as usize;
            if slots.next().is_none() {
                let is_all = false;
                return Taken { count, is_all };
            }
        }
    }

    /// Puts the next completion, whatever it is, into `into`, which is `Ok(None)`.
    #[cold]
    #[inline(never)]
    fn poll_any(&self, state: &mut State, into: &mut Result<Option<Completion>>) {
        *into = self.take_any(state);
        self.note_next_slot(&state.ring);
    }

    /// Notes where the next completion will be, for the hint.
    #[inline]
    pub(super) fn note_next_slot(&self, ring: &impl CompletionRing) {
        if let Some(slot) = ring.next_slot() {
            self.0.next_slot.store(slot, Ordering::Relaxed);
        }
    }

    /// Takes the next completion, whatever it is.
    fn take_any(&self, state: &mut State) -> Result<Option<Completion>> {
        if self.context().is_closed() {
            return self.poll_closed(state);
        }
        if state.is_behind {
            if let Some(number) = state.stray.take() {
                return Err(Error::Stray { number });
            }
            if let Some(completion) = state.next_reported(&self.0.credits) {
                return Ok(Some(completion));
            }
            while let Some(wc) = state.taken.pop_front() {
                if let Some(completion) = self.complete(state, &wc)? {
                    return Ok(Some(completion));
                }
            }
            state.is_behind = false;
        }
        loop {
            let wc = match self.pop(&mut state.ring) {
                Popped::Completion(wc) => wc,
                Popped::Nothing => return Ok(None),
                Popped::Closed => return self.poll_closed(state),
            };
            if let Some(completion) = self.complete(state, &wc)? {
                return Ok(Some(completion));
            }
        }
    }

    /// Processes a completion that was taken from the device. Returns the completion to report,
    /// if there is one.
    fn complete(&self, state: &mut State, wc: &WorkCompletion) -> Result<Option<Completion>> {
        let id = RequestId::from_device(wc.id);
        let Some(queue) = state.queues.get(id.queue) else {
            // The queue pair was destroyed.
            return Ok(None);
        };
        let Some(reported) = queue.complete(&self.0.credits, id.number, wc) else {
            return Err(Error::Stray { number: wc.id });
        };
        if wc.status != WcStatus::SUCCESS {
            state.queues.request_failed(id.queue, wc);
        }
        Ok(state.reported(id.queue, reported))
    }

    /// Takes the oldest completion out of the ring, unless the context is closed: what was read may
    /// be the zeros of a ring that is being replaced.
    pub(super) fn pop(&self, ring: &mut CompletionRings) -> Popped {
        let oldest = ring.oldest();
        // As in `take_from`.
        fence(Ordering::Acquire);
        if self.context().uverbs().is_closed() {
            return Popped::Closed;
        }
        let Some((slot, wc)) = oldest else {
            return Popped::Nothing;
        };
        ring.remove(slot);
        Popped::Completion(wc)
    }

    /// As [`pop`](Self::pop). Of a closed context, what had completed before, unless the device may
    /// still use memory.
    pub(super) fn pop_rest(&self, ring: &mut CompletionRings) -> Option<WorkCompletion> {
        match self.pop(ring) {
            Popped::Completion(wc) => Some(wc),
            Popped::Closed if self.context().is_destroyed() => {
                self.context().uverbs().wait_until_closed();
                ring.pop()
            }
            Popped::Nothing | Popped::Closed => None,
        }
    }

    /// What had completed before the context was closed, then what had not.
    fn poll_closed(&self, state: &mut State) -> Result<Option<Completion>> {
        let credits = &self.0.credits;
        let mut reported = state.next_reported(credits);
        if reported.is_none() && self.context().is_destroyed() {
            reported = self.take_rest(state);
        }
        // Queues that are noted as reporting may have nothing to report, and others may not have
        // failed yet.
        let reported = reported.or_else(|| {
            state.fail_all(credits);
            state.next_reported(credits)
        });
        let Some(mut completion) = reported else {
            return Err(self.context().closed_error());
        };
        if !self.context().is_destroyed() {
            // The device may still use the memory.
            std::mem::take(&mut completion.sg_list).keep();
        }
        Ok(Some(completion))
    }

    /// The next of what had completed before the context was closed.
    fn take_rest(&self, state: &mut State) -> Option<Completion> {
        loop {
            let taken = state.taken.pop_front();
            let wc = taken.or_else(|| self.pop_rest(&mut state.ring))?;
            // A thread may have taken one out of the ring just after the ring was copied: that one is
            // there again, and belongs to no request any more.
            if let Ok(Some(completion)) = self.complete(state, &wc) {
                return Some(completion);
            }
        }
    }

    /// Takes up to `limit` completions, oldest first, without a system call, and appends them to
    /// `completions`. Returns how many.
    ///
    /// Poll so where many requests complete, with a vector that is kept: the completions share
    /// what a call costs, and taking them out by [`drain`](Vec::drain) moves each only once.
    /// Source: `ibv_poll_cq(3)`.
    ///
    /// # Errors
    /// Those of [`poll`](Self::poll). If some completions were taken, the next call returns
    /// the error.
    #[doc(alias = "ibv_poll_cq")]
    pub fn poll_many(&self, completions: &mut Vec<Completion>, limit: usize) -> Result<usize> {
        // It never has more of them.
        let mut left = limit.min(self.entries() as usize);
        let before = completions.len();
        let Some(mut state) = self.state() else {
            return Err(self.context().closed_error());
        };
        loop {
            // Memory for no more than there may be soon.
            let step = left.min(MOST_AT_ONCE);
            let take = |slots: &mut Spare<'_>| self.take_next(&mut state, slots);
            let (count, taken) = append(completions, step, take);
            left -= count;
            if taken.is_all || left == 0 {
                break;
            }
            if count == step {
                continue;
            }
            let mut polled = Ok(None);
            self.poll_any(&mut state, &mut polled);
            match polled {
                Ok(None) => break,
                Ok(Some(completion)) => {
                    completions.push(completion);
                    left -= 1;
                }
                Err(error) if completions.len() == before => return Err(error),
                Err(error) => {
                    // The next call returns it, or finds again that the device is gone.
                    if let Error::Stray { number } = error {
                        state.stray = Some(number);
                        state.is_behind = true;
                    }
                    break;
                }
            }
        }
        Ok(completions.len() - before)
    }
}

/// What is oldest in a ring.
pub(super) enum Popped {
    /// This one, which was taken out.
    Completion(WorkCompletion),
    /// There is none.
    Nothing,
    /// The context is closed, and nothing was taken out.
    Closed,
}

/// What was taken from the ring.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    /// How many completions.
    count: usize,
    /// Whether there are no others.
    is_all: bool,
}
