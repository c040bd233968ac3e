//! Completion queues.

use std::collections::{HashMap, VecDeque};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use rdmacm_abi::uverbs::{CommandNumber, CreateCq, DestroyCq, WorkCompletion};
use rdmacm_core::Deadline;

use crate::completion::{Completion, WorkId};
use crate::completion_channel::CompletionChannel;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::provider::CompletionRing;
use crate::token::Token;
use crate::work_queue::WorkQueue;

mod credits;
mod leader;
mod options;
#[cfg(test)]
mod tests;

use credits::CqCredits;
use leader::LeaderElection;
pub use options::CqOptions;

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
    /// To be reported.
    ready: VecDeque<Completion>,
    /// The id of a completion without a request, reported by the next poll.
    stray: Option<u64>,
    queues: HashMap<u32, Reporter>,
}

/// A work queue whose requests complete here.
#[derive(Debug)]
struct Reporter {
    queue: Weak<dyn WorkQueue>,
    /// How many queue pairs it serves; more than one if it is shared.
    queue_pairs: u32,
    /// The credits that are reserved for all of its requests at once, if it is shared.
    credits: u32,
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
                ready: VecDeque::new(),
                stray: None,
                queues: HashMap::new(),
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
        self.0.credits.lock().entries
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

    fn poll_in(&self, state: &mut State) -> Result<Option<Completion>> {
        if self.context().is_gone() {
            return self.poll_gone(state);
        }
        if let Some(number) = state.stray.take() {
            return Err(Error::Stray { number });
        }
        while state.ready.is_empty() {
            let Some(wc) = state.take() else {
                return Ok(None);
            };
            if self.context().is_gone() {
                // The entry may be the zeros of a replaced ring.
                return self.poll_gone(state);
            }
            let work = WorkId::of(wc.id);
            let Some(reporter) = state.queues.get(&work.queue) else {
                // The queue pair was destroyed.
                continue;
            };
            let queue = reporter.queue.upgrade();
            let ready = &mut state.ready;
            if !queue.is_some_and(|queue| queue.complete(work.number, &wc, ready)) {
                return Err(Error::Stray { number: wc.id });
            }
        }
        Ok(state.ready.pop_front())
    }

    fn poll_gone(&self, state: &mut State) -> Result<Option<Completion>> {
        if state.ready.is_empty() {
            let queues = state.queues.values();
            let queues: Vec<_> = queues.filter_map(|one| one.queue.upgrade()).collect();
            let given_up = queues.iter().flat_map(|queue| queue.fail_all());
            state.ready.extend(given_up.map(|one| self.safe(one)));
        }
        let completion = state.ready.pop_front();
        completion.map(Some).ok_or_else(|| self.context().gone())
    }

    /// Returns no memory that the device may still use: keeps it.
    fn safe(&self, mut completion: Completion) -> Completion {
        if !self.context().is_destroyed() {
            std::mem::take(&mut completion.sg_list).keep();
        }
        completion
    }

    /// Takes up to `most` completions, oldest first, without a system call.
    ///
    /// # Errors
    /// Those of [`poll`](Self::poll). If some completions were taken, the next call returns
    /// the error.
    #[doc(alias = "ibv_poll_cq")]
    pub fn poll_into(&self, completions: &mut Vec<Completion>, most: usize) -> Result<usize> {
        let mut state = self.state();
        for taken in 0..most {
            match self.poll_in(&mut state) {
                Ok(Some(completion)) => completions.push(completion),
                Err(error) if taken == 0 => return Err(error),
                Err(Error::Stray { number }) => {
                    state.stray = Some(number);
                    return Ok(taken);
                }
                // The next call returns it again.
                Ok(None) | Err(_) => return Ok(taken),
            }
        }
        Ok(most)
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
        let mut credits = self.0.credits.lock();
        if entries < credits.reserved {
            let reason = "more completions than that may still come";
            return Err(Error::invalid(operation, reason));
        }
        let uverbs = self.context().uverbs();
        state.ring.resize(uverbs, self.0.handle, entries)?;
        credits.entries = state.ring.capacity();
        Ok(())
    }

    pub(crate) fn handle(&self) -> u32 {
        self.0.handle
    }

    /// Reserves `count` credits if `spare` more stay free; otherwise returns `false`.
    pub(crate) fn reserve(&self, count: usize, spare: usize) -> bool {
        self.0.credits.reserve(count, spare)
    }

    pub(crate) fn release(&self, requests: usize) {
        self.0.credits.release(requests);
    }

    /// Registers a work queue, whose completions arrive here.
    pub(crate) fn admit(&self, token: u32, queue: Weak<dyn WorkQueue>) {
        let reporter = Reporter {
            queue,
            queue_pairs: 1,
            credits: 0,
        };
        self.state().queues.insert(token, reporter);
    }

    /// Registers a shared receive queue, or one more queue pair of it. Reserves credits for
    /// all its requests; returns `false` if there are too few.
    pub(crate) fn admit_shared(
        &self,
        token: u32,
        queue: Weak<dyn WorkQueue>,
        credits: u32,
    ) -> bool {
        let mut state = self.state();
        if let Some(reporter) = state.queues.get_mut(&token) {
            reporter.queue_pairs += 1;
            return true;
        }
        if !self.reserve(credits as usize, 0) {
            return false;
        }
        let reporter = Reporter {
            queue,
            queue_pairs: 1,
            credits,
        };
        state.queues.insert(token, reporter);
        true
    }

    /// Removes a queue pair's work queue. Discards its completions unless other queue pairs
    /// share it, and returns its completions that were yet to be reported.
    pub(crate) fn dismiss(&self, token: u32) -> VecDeque<Completion> {
        let mut state = self.state();
        let Some(reporter) = state.queues.get_mut(&token) else {
            return VecDeque::new();
        };
        reporter.queue_pairs -= 1;
        if reporter.queue_pairs > 0 {
            return VecDeque::new();
        }
        let credits = reporter.credits;
        let shared = reporter.queue.upgrade().filter(|_| credits > 0);
        state.queues.remove(&token);
        let of_others = |completion: &Completion| completion.work.queue != token;
        let ready = std::mem::take(&mut state.ready).into_iter();
        let (others, mut ready) = ready.partition(of_others);
        state.ready = others;
        self.take_out(&mut state);
        state.taken.retain(|wc| {
            let work = WorkId::of(wc.id);
            if work.queue != token {
                return true;
            }
            if let Some(queue) = &shared {
                // Other queue pairs may use the shared queue: do not keep the memory there.
                queue.complete(work.number, wc, &mut ready);
            }
            false
        });
        self.release(credits as usize);
        ready
    }

    /// Reports the outstanding requests of a work queue as flushed, after the completions of
    /// the device.
    pub(crate) fn flush(&self, token: u32, queue: &dyn WorkQueue) {
        let mut state = self.state();
        self.take_out(&mut state);
        let all = std::mem::take(&mut state.taken).into_iter();
        let (own, others) = all.partition::<VecDeque<_>, _>(|wc| WorkId::of(wc.id).queue == token);
        state.taken = others;
        for wc in own {
            if !queue.complete(WorkId::of(wc.id).number, &wc, &mut state.ready) {
                state.stray = Some(wc.id);
            }
        }
        queue.flush(&mut state.ready);
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

    /// Discards the completions of a work queue whose requests were discarded.
    pub(crate) fn purge(&self, token: u32) {
        let mut state = self.state();
        self.take_out(&mut state);
        state.taken.retain(|wc| WorkId::of(wc.id).queue != token);
        state
            .ready
            .retain(|completion| completion.work.queue != token);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self) -> Option<WorkCompletion> {
        self.taken.pop_front().or_else(|| self.ring.pop())
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
