//! Options of a completion queue.

use super::CompletionQueue;
use crate::completion_channel::CompletionChannel;
use crate::context::Context;
use crate::error::Result;

/// Options of a completion queue.
#[derive(Clone, Debug)]
pub struct CqOptions {
    pub(super) entries: u32,
    pub(super) channel: Option<CompletionChannel>,
    pub(super) vector: u32,
    pub(super) polls: u32,
}

impl CqOptions {
    pub(super) fn new(entries: u32) -> Self {
        Self {
            entries,
            channel: None,
            vector: 0,
            polls: 0,
        }
    }

    /// Sets how often [`CompletionQueue::next`] polls before it sleeps; 0 by default. The polls
    /// end at its deadline. A completion that comes meanwhile needs no notification, which saves
    /// three system calls and the time to wake up. The polls take processor time that others could
    /// use, so this is for devices that complete requests within about a microsecond, on a
    /// processor of one's own.
    #[must_use]
    pub fn polls_before_sleep(mut self, polls: u32) -> Self {
        self.polls = polls;
        self
    }

    /// Sets its completion channel.
    #[must_use]
    #[doc(alias = "ibv_comp_channel")]
    pub fn channel(mut self, channel: &CompletionChannel) -> Self {
        self.channel = Some(channel.clone());
        self
    }

    /// Sets the completion vector, from 0.
    #[must_use]
    #[doc(alias = "comp_vector")]
    pub fn vector(mut self, vector: u32) -> Self {
        self.vector = vector;
        self
    }

    /// Creates it on a device. Source: `ibv_create_cq(3)`.
    ///
    /// # Errors
    /// [`Error::InvalidInput`](crate::Error::InvalidInput) for a channel of another
    /// context; [`Error::Command`](crate::Error::Command) with `EINVAL`
    /// for zero entries, more than the device's limit, or an unknown completion vector.
    #[doc(alias = "ibv_create_cq")]
    pub fn create(&self, context: &Context) -> Result<CompletionQueue> {
        CompletionQueue::create(context, self)
    }
}
