//! Completion queues.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::{Mutex, MutexGuard};
use rdmacm_abi::uverbs::{CommandNumber, CreateCq, DestroyCq};

use crate::completion_channel::CompletionChannel;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::fork_detector::ForkDetector;
use crate::operation::Operation;
use crate::provider::{CompletionHint, CompletionRing};
use crate::token::Token;

mod credits;
mod leader;
mod options;
mod output_slots;
mod poll;
mod state;
#[cfg(test)]
mod tests;
mod users;
mod wait;
mod watch;
mod work_queues;

pub use watch::CompletionWatch;

pub(crate) use credits::CqCredits;
use leader::LeaderElection;
pub use options::CqOptions;
pub(crate) use output_slots::{OutputSlot, OutputSlots};
#[cfg(test)]
pub(crate) use output_slots::{Spare, append};
use state::State;

/// A completion queue. Clones are handles to the same queue; the kernel's object is
/// destroyed when they and the queue pairs that use it are dropped.
///
/// Posting reserves an entry for the completion of each request, and fails if there is none. So the
/// queue does not overflow, with two exceptions. rxe of Linux 6.1 may complete a request that a
/// move to RESET has discarded. And siw may complete one read of a queue pair twice
/// when the connection ends (`siw_sq_flush`); polling returns [`Error::Stray`] for the second one.
/// On siw, leave one entry unused for each queue pair whose send requests the queue serves. In a
/// full queue the second completion would take the place of another request's, which would be
/// lost.
#[derive(Clone, Debug)]
#[doc(alias = "ibv_cq", alias = "ibv_destroy_cq")]
pub struct CompletionQueue(Arc<Created>);

#[derive(Debug)]
struct Created {
    context: Context,
    token: Token,
    handle: u32,
    credits: CqCredits,
    channel: Option<CompletionChannel>,
    leader: LeaderElection,
    /// How often `next` polls before it sleeps.
    polls: u32,
    fork_detector: ForkDetector,
    /// Of the ring that it was created with.
    hint: Option<CompletionHint>,
    /// The slot of the next completion, if the hint needs it.
    next_slot: AtomicU32,
    /// Whether it may have another ring than the hint's.
    is_resized: AtomicBool,
    state: Mutex<State>,
}

impl PartialEq for CompletionQueue {
    /// Whether both are the same queue.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CompletionQueue {}

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
            polls,
        } = *options;
        let operation = Operation::CreateCompletionQueue { entries };
        let uverbs = context.uverbs();
        let token = context.next_token();
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
                request.completion_channel = channel.number()?;
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
            polls,
            fork_detector: uverbs.fork_detector(),
            hint: ring.hint(),
            next_slot: AtomicU32::new(0),
            is_resized: AtomicBool::new(false),
            state: Mutex::new(State::new(ring)),
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
        self.0.credits.entries()
    }

    /// Its completion channel, if it has one.
    #[must_use]
    pub fn channel(&self) -> Option<&CompletionChannel> {
        self.0.channel.as_ref()
    }

    /// Identifies this queue in the notifications of its completion channel, and in asynchronous
    /// events.
    #[must_use]
    pub fn token(&self) -> Token {
        self.0.token
    }

    /// Resizes the queue to at least `entries` completions. Source: `ibv_resize_cq(3)`.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for fewer than the outstanding requests, and on siw, which does
    /// not resize; [`Error::Command`].
    #[doc(alias = "ibv_resize_cq")]
    pub fn resize(&self, entries: u32) -> Result<()> {
        let operation = Operation::ResizeCompletionQueue { entries };
        let Some(mut state) = self.state() else {
            return Err(self.context().closed_error());
        };
        if !state.ring.can_resize() {
            // It says why. A request that is posted meanwhile needs the credits.
            return state
                .ring
                .resize(self.context().uverbs(), self.0.handle, entries);
        }
        let credits = &self.0.credits;
        let before = credits.entries();
        // Nothing is posted meanwhile that a smaller queue has no room for.
        if !credits.set_entries(entries.min(before)) {
            let reason = "more completions than that may still come";
            return Err(Error::invalid(operation, reason));
        }
        let was_resized = self.0.is_resized.swap(true, Ordering::Relaxed);
        let uverbs = self.context().uverbs();
        let resized = state.ring.resize(uverbs, self.0.handle, entries);
        let holds = if resized.is_ok() {
            state.ring.capacity()
        } else {
            self.0.is_resized.store(was_resized, Ordering::Relaxed);
            before
        };
        if !credits.set_entries(holds) {
            // Smaller than what was asked for, and than what may come.
            drop(state);
            self.context().close();
            return Err(self.context().closed_error());
        }
        resized
    }

    pub(crate) fn handle(&self) -> u32 {
        self.0.handle
    }

    /// Reserves one credit if there is one; otherwise returns `false`.
    #[inline]
    pub(crate) fn reserve_one(&self) -> bool {
        self.0.credits.reserve_one()
    }

    /// Reserves `count` credits if `spare` more stay free; otherwise returns `false`.
    pub(crate) fn reserve(&self, count: u32, spare: u32) -> bool {
        self.0.credits.reserve(count, spare)
    }

    pub(crate) fn release(&self, requests: u32) {
        self.0.credits.release(requests);
    }

    /// What its lock guards; `None` in a forked child, which may have copied it while a thread of
    /// the parent changed it. That the lock is free does not show that nobody did: the pages that a
    /// device uses are copied at once, and the others later.
    #[inline]
    fn state(&self) -> Option<MutexGuard<'_, State>> {
        self.0
            .fork_detector
            .is_same_process()
            .then(|| self.0.state.lock())
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        self.context.uverbs().destroy(&DestroyCq::new(self.handle));
        if let Some(channel) = &self.channel {
            channel.remove_queue();
        }
        if !self.fork_detector.is_same_process() {
            self.state.get_mut().leak();
        }
    }
}
