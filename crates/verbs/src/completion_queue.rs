//! Completion queues.

use std::collections::VecDeque;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rdmacm_abi::uverbs::{CommandNumber, CreateCq, DestroyCq, WorkCompletion};
use rdmacm_core::Deadline;

use crate::completion::{Completion, WorkId};
use crate::completion_channel::CompletionChannel;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::memory::SgList;
use crate::operation::Operation;
use crate::provider::CompletionRing;
use crate::request_id::{QueueIndex, RequestId};
use crate::token::Token;
use crate::work_queue::{Reported, SharedReceives, WorkQueue};

mod credits;
mod leader;
mod options;
#[cfg(test)]
mod tests;
mod work_queues;

pub(crate) use credits::CqCredits;
use leader::LeaderElection;
pub use options::CqOptions;
use work_queues::WorkQueues;

/// A completion queue. Clones are handles to the same queue; the kernel's object is
/// destroyed when they and the queue pairs that use it are dropped.
///
/// It cannot overflow: posting reserves an entry for the completion of each request, and
/// fails if there is none.
#[derive(Clone, Debug)]
#[doc(alias = "ibv_cq")]
pub struct CompletionQueue(Arc<Created>);

#[derive(Debug)]
struct Created {
    context: Context,
    token: Token,
    handle: u32,
    credits: CqCredits,
    channel: Option<CompletionChannel>,
    leader: LeaderElection,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    ring: Box<dyn CompletionRing>,
    /// Taken out of the ring to reach the completions of another queue pair.
    taken: VecDeque<WorkCompletion>,
    /// The work queues with more than one completed request to report.
    reporting: VecDeque<QueueIndex>,
    /// The id of a completion without a request, reported by the next poll.
    stray: Option<u64>,
    queues: WorkQueues,
}

impl CompletionQueue {
    /// Options of a completion queue of at least `entries` completions.
    #[must_use]
    pub fn options(entries: u32) -> CqOptions {
        CqOptions::new(entries)
    }

    fn create(context: &Context, options: &CqOptions) -> Result<Self> {
        let CqOptions {
            entries,
            ref channel,
            vector,
        } = *options;
        let operation = Operation::CreateCompletionQueue { entries };
        let uverbs = context.uverbs();
        let token = context.next_token()?;
        let mut request = CreateCq::new(entries);
        request.user_handle = token.handle();
        request.completion_vector = vector;
        let create = |request| uverbs.provider().create_cq(uverbs, operation, request);
        let (answer, ring) = match channel {
            None => create(request)?,
            Some(channel) if channel.context() != context => {
                let reason = "its completion channel must be of its own context";
                return Err(Error::invalid(operation, reason));
            }
            Some(channel) => {
                let file = channel.duplicate()?;
                request.completion_channel = file.as_raw_fd();
                create(request)?
            }
        };
        if let Some(channel) = channel {
            channel.add_queue();
        }
        let holds = answer.entries.min(ring.capacity());
        let queue = Self(Arc::new(Created {
            context: context.clone(),
            token,
            handle: answer.handle,
            credits: CqCredits::new(holds),
            channel: channel.clone(),
            leader: LeaderElection::default(),
            state: Mutex::new(State {
                ring,
                taken: VecDeque::new(),
                reporting: VecDeque::new(),
                stray: None,
                queues: WorkQueues::default(),
            }),
        }));
        if holds < entries {
            let what = "a queue smaller than asked for";
            return Err(Error::answer(operation, CommandNumber::CREATE_CQ, what));
        }
        Ok(queue)
    }

    /// Its context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// How many completions it holds: at least as many as asked for.
    #[must_use]
    #[doc(alias = "cqe")]
    pub fn entries(&self) -> u32 {
        self.0.credits.usage().entries
    }

    /// Its completion channel, if it has one.
    #[must_use]
    pub fn channel(&self) -> Option<&CompletionChannel> {
        self.0.channel.as_ref()
    }

    /// Its name in events.
    #[must_use]
    pub fn token(&self) -> Token {
        self.0.token
    }

    /// Takes the oldest completion, without a system call.
    ///
    /// # Errors
    /// [`Error::Gone`] after the device was removed and all outstanding requests were
    /// returned; [`Error::Stray`] for a completion that belongs to no request.
    #[doc(alias = "ibv_poll_cq")]
    pub fn poll(&self) -> Result<Option<Completion>> {
        self.poll_in(&mut self.state())
    }

    #[inline]
    fn poll_in(&self, state: &mut State) -> Result<Option<Completion>> {
        if self.context().is_gone() {
            return self.poll_gone(state);
        }
        if !state.reporting.is_empty() || state.stray.is_some() {
            let left = state.next_left(&self.0.credits)?;
            if left.is_some() {
                return Ok(left);
            }
        }
        let mut report = None;
        while let Some(wc) = state.take() {
            if self.context().is_gone() {
                // The entry may be the zeros of a replaced ring.
                return self.poll_gone(state);
            }
            let id = RequestId::from_device(wc.id);
            let Some(queue) = state.queues.get(id.queue) else {
                // The queue pair was destroyed.
                continue;
            };
            match queue.complete(&self.0.credits, id.number, &wc, &mut report) {
                Reported::All if report.is_none() => {}
                Reported::All => return Ok(report),
                Reported::More => {
                    state.reporting.push_back(id.queue);
                    return Ok(report);
                }
                Reported::NoRequest => return Err(Error::Stray { number: wc.id }),
            }
        }
        Ok(None)
    }

    #[cold]
    fn poll_gone(&self, state: &mut State) -> Result<Option<Completion>> {
        if state.reporting.is_empty() {
            let State {
                queues, reporting, ..
            } = state;
            for (index, queue) in queues.iter_mut() {
                queue.fail_all(&self.0.credits);
                reporting.push_back(index);
            }
        }
        let completion = state.next_reported(&self.0.credits);
        let completion = completion.map(|completion| self.safe(completion));
        completion.map(Some).ok_or_else(|| self.context().gone())
    }

    /// Returns no memory that the device may still use: keeps it.
    fn safe(&self, mut completion: Completion) -> Completion {
        if !self.context().is_destroyed() {
            std::mem::take(&mut completion.sg_list).keep();
        }
        completion
    }

    /// Fills empty places with completions, oldest first, without a system call. Returns how
    /// many it filled, up to the first place that is not empty.
    ///
    /// # Errors
    /// Those of [`poll`](Self::poll). If some completions were taken, the next call returns
    /// the error.
    #[doc(alias = "ibv_poll_cq")]
    pub fn poll_into(&self, completions: &mut [Option<Completion>]) -> Result<usize> {
        let mut state = self.state();
        let empty = completions.iter_mut().take_while(|place| place.is_none());
        let mut filled = 0;
        for place in empty {
            match self.poll_in(&mut state) {
                Ok(None) => break,
                Ok(completion) => *place = completion,
                Err(error) if filled == 0 => return Err(error),
                Err(Error::Stray { number }) => {
                    state.stray = Some(number);
                    break;
                }
                // The next call returns it again.
                Err(_) => break,
            }
            filled += 1;
        }
        Ok(filled)
    }

    /// Requests a notification on the channel for the next completion; with
    /// `solicited_only`, for the next failed or solicited one. siw ignores that and notifies
    /// for any. Completions that are already in the queue cause no notification: poll once
    /// more after this, then wait.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] without a channel; [`Error::Command`].
    #[doc(alias = "ibv_req_notify_cq")]
    pub fn arm(&self, solicited_only: bool) -> Result<()> {
        if self.0.channel.is_none() {
            let reason = "it was made without a completion channel";
            return Err(Error::invalid(Operation::Arm, reason));
        }
        let uverbs = self.context().uverbs();
        if uverbs.is_in_child() {
            return Err(uverbs.gone());
        }
        self.state().ring.arm(uverbs, self.0.handle, solicited_only)
    }

    /// Waits for the next completion; `None` if the deadline passes.
    ///
    /// # Errors
    /// Those of [`poll`](Self::poll) and [`arm`](Self::arm);
    /// [`Error::InvalidInput`] if its channel has other queues, whose notifications this
    /// would take.
    #[doc(alias = "rdma_get_send_comp", alias = "rdma_get_recv_comp")]
    pub fn next(&self, deadline: impl Into<Deadline>) -> Result<Option<Completion>> {
        let until = deadline.into().until(Instant::now());
        if let Some(completion) = self.poll()? {
            return Ok(Some(completion));
        }
        match self.wait(until) {
            // Outstanding requests are returned first.
            Err(error) if error.is_gone() => self.poll(),
            waited => waited,
        }
    }

    fn wait(&self, until: Option<Instant>) -> Result<Option<Completion>> {
        let channel = self.own_channel()?;
        let Some(_guard) = self.0.leader.lead(until) else {
            return self.poll();
        };
        loop {
            self.arm(false)?;
            if let Some(completion) = self.poll()? {
                return Ok(Some(completion));
            }
            if !channel.wait(until)? {
                return self.poll();
            }
            while matches!(channel.take(), Ok(Some(_))) {}
        }
    }

    /// Its completion channel, checked to have no other queue.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if the channel has another queue, or there is no channel.
    pub fn own_channel(&self) -> Result<&CompletionChannel> {
        let reason = match &self.0.channel {
            None => "it was made without a completion channel",
            Some(channel) if channel.queues() > 1 => "its completion channel has other queues too",
            Some(channel) => return Ok(channel),
        };
        Err(Error::invalid(Operation::Wait, reason))
    }

    /// Resizes the queue to at least `entries` completions.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for fewer than the outstanding requests, and on siw, which does
    /// not resize; [`Error::Command`].
    #[doc(alias = "ibv_resize_cq")]
    pub fn resize(&self, entries: u32) -> Result<()> {
        let operation = Operation::ResizeCompletionQueue { entries };
        let mut state = self.state();
        let credits = &self.0.credits;
        let before = credits.usage().entries;
        // Nothing is posted meanwhile that a smaller queue has no room for.
        if !credits.set_entries(entries.min(before)) {
            let reason = "more completions than that may still come";
            return Err(Error::invalid(operation, reason));
        }
        let uverbs = self.context().uverbs();
        let resized = state.ring.resize(uverbs, self.0.handle, entries);
        let entries = if resized.is_ok() {
            state.ring.capacity()
        } else {
            before
        };
        credits.set_entries(entries);
        resized
    }

    pub(crate) fn handle(&self) -> u32 {
        self.0.handle
    }

    /// Reserves `count` credits if `spare` more stay free; otherwise returns `false`.
    pub(crate) fn reserve(&self, count: u32, spare: u32) -> bool {
        self.0.credits.reserve(count, spare)
    }

    pub(crate) fn release(&self, requests: u32) {
        self.0.credits.release(requests);
    }

    /// Reserves an index for a work queue, until it is [dismissed](Self::dismiss); `None` if
    /// there are too many.
    pub(crate) fn reserve_index(&self) -> Option<QueueIndex> {
        self.state().queues.reserve()
    }

    /// Registers a work queue, whose completions arrive here.
    pub(crate) fn admit(&self, index: QueueIndex, queue: Box<dyn WorkQueue>) {
        self.state().queues.insert(index, queue);
    }

    /// Registers a shared receive queue, or one more queue pair of it. Reserves credits for
    /// all its requests; returns `false` if there are too few.
    pub(crate) fn admit_shared(&self, token: u32, queue: SharedReceives, credits: u32) -> bool {
        let mut state = self.state();
        if state.queues.join(token) {
            return true;
        }
        let reserved = self.reserve(credits, 0);
        if reserved {
            state.queues.insert_shared(token, Box::new(queue), credits);
        }
        reserved
    }

    /// Removes a queue pair's work queue, after the kernel has destroyed the queue pair, and
    /// returns the memory of its requests. Discards its completions, but for those of a shared
    /// queue that the last queue pair leaves.
    pub(crate) fn dismiss(&self, index: QueueIndex) -> Vec<(WorkId, SgList)> {
        let mut state = self.state();
        let Some((mut queue, shared)) = state.queues.remove(index) else {
            return Vec::new();
        };
        state.reporting.retain(|one| *one != index);
        self.take_out(&mut state);
        let own = state.take_own(index);
        let credits = &self.0.credits;
        if shared == 0 {
            return queue.take_all(credits);
        }
        // Other queue pairs may use the shared queue on other completion queues: the memory
        // does not stay there.
        let completions = own.into_iter().filter_map(|wc| {
            let mut report = None;
            queue.complete(
                credits,
                RequestId::from_device(wc.id).number,
                &wc,
                &mut report,
            );
            report
        });
        let memory = completions.map(|completion| (completion.work, completion.sg_list));
        let memory = memory.collect();
        self.release(shared);
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
    }

    /// Takes all completions out of the ring.
    fn take_out(&self, state: &mut State) {
        if self.context().is_in_child() {
            return;
        }
        while let Some(wc) = state.ring.pop() {
            state.taken.push_back(wc);
        }
    }

    /// Discards the requests of a work queue and their completions, as the device does.
    pub(crate) fn discard(&self, index: QueueIndex) {
        let mut state = self.state();
        self.take_out(&mut state);
        state.take_own(index);
        state.reporting.retain(|one| *one != index);
        if let Some(queue) = state.queues.get(index) {
            queue.discard(&self.0.credits);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self) -> Option<WorkCompletion> {
        if self.taken.is_empty() {
            return self.ring.pop();
        }
        self.taken.pop_front()
    }

    /// What an earlier call has left to report.
    #[cold]
    fn next_left(&mut self, credits: &CqCredits) -> Result<Option<Completion>> {
        if let Some(number) = self.stray.take() {
            return Err(Error::Stray { number });
        }
        Ok(self.next_reported(credits))
    }

    /// The next completion of the queues that have more than one to report.
    fn next_reported(&mut self, credits: &CqCredits) -> Option<Completion> {
        while let Some(index) = self.reporting.front() {
            let mut report = None;
            let queue = self.queues.get(*index);
            let reported = queue.map(|queue| queue.report(credits, &mut report));
            if !matches!(reported, Some(Reported::More)) {
                self.reporting.pop_front();
            }
            if report.is_some() {
                return report;
            }
        }
        None
    }

    /// Takes the completions of a work queue out of those that were taken from the ring.
    fn take_own(&mut self, index: QueueIndex) -> VecDeque<WorkCompletion> {
        let is_own = |wc: &WorkCompletion| RequestId::from_device(wc.id).queue == index;
        let all = std::mem::take(&mut self.taken).into_iter();
        let (own, others) = all.partition(is_own);
        self.taken = others;
        own
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        self.context.uverbs().destroy(&DestroyCq::new(self.handle));
        if let Some(channel) = &self.channel {
            channel.remove_queue();
        }
    }
}
