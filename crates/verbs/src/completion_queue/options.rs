//! What a completion queue is to be like.

use super::CompletionQueue;
use crate::completion_channel::CompletionChannel;
use crate::context::Context;
use crate::error::Result;

/// What a completion queue is to be like.
#[derive(Clone, Debug)]
pub struct CqOptions {
    pub(super) entries: u32,
    pub(super) channel: Option<CompletionChannel>,
    pub(super) vector: u32,
}

impl CqOptions {
    pub(super) fn new(entries: u32) -> Self {
        Self {
            entries,
            channel: None,
            vector: 0,
        }
    }

    /// The channel on which it tells of completions.
    #[must_use]
    #[doc(alias = "ibv_comp_channel")]
    pub fn channel(mut self, channel: &CompletionChannel) -> Self {
        self.channel = Some(channel.clone());
        self
    }

    /// The device's interrupt that does so, from 0.
    #[must_use]
    #[doc(alias = "comp_vector")]
    pub fn vector(mut self, vector: u32) -> Self {
        self.vector = vector;
        self
    }

    /// Makes it on a device.
    ///
    /// # Errors
    /// [`Error::InvalidInput`](crate::Error::InvalidInput) for a channel of another
    /// context; [`Error::Command`](crate::Error::Command) when the kernel refuses,
    /// with `EINVAL` for no entries or more than the device's limit, or a vector
    /// it does not have.
    #[doc(alias = "ibv_create_cq")]
    pub fn create(&self, context: &Context) -> Result<CompletionQueue> {
        CompletionQueue::create(context, self)
    }
}
