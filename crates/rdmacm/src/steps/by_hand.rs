//! Completions of a queue pair that is posted to by hand.

use std::task::Waker;

use rdmacm_core::EventKind;
use rdmacm_verbs::{Completion, CompletionQueue};

use super::Attempt;
use crate::error::{Cause, Result};
use crate::hub::{Place, Tracked, next};
use crate::step::Step;

/// Waits for the next completion.
pub(crate) async fn next_completion(
    attempt: &Attempt,
    tracked: &Tracked,
    queue: &CompletionQueue,
    step: Step,
) -> Result<Completion> {
    let place = Completions {
        tracked,
        queue,
        trouble: None,
    };
    let completed = next(&attempt.hub, place, attempt.until).await;
    completed
        .map_err(Cause::from)
        .and_then(|completed| completed)
        .map_err(|cause| attempt.fail_on(tracked.id(), step, cause))
}

/// What a queue reports: what has completed first, then why no more does.
#[derive(Debug)]
struct Completions<'a> {
    tracked: &'a Tracked,
    queue: &'a CompletionQueue,
    /// Why the queue cannot be waited for.
    trouble: Option<rdmacm_verbs::Error>,
}

impl Completions<'_> {
    /// Why the connection is over. What came before is in the queue by then.
    fn ended(&self) -> Option<Cause> {
        let ended = self.tracked.mailbox().ended()?;
        let context = self.queue.context();
        // Nobody need wait here any more who would hear that the device waits for its
        // context to be closed.
        match ended.kind() {
            EventKind::DeviceRemoval => context.close(),
            // A peer on the same device may have heard of its removal first.
            _ => context.heed_removal(),
        }
        Some(Cause::Ended(ended))
    }

    fn join(&self, key: u64, waker: &Waker) -> rdmacm_verbs::Result<()> {
        let channel = self.queue.own_channel()?;
        self.tracked.hub().await_queue(channel, key, waker)?;
        self.queue.arm(false)
    }
}

impl Place for Completions<'_> {
    type Item = Result<Completion, Cause>;

    fn take(&mut self) -> Option<Self::Item> {
        let ended = self.ended();
        match self.queue.poll() {
            Ok(Some(completion)) => return Some(Ok(completion)),
            Ok(None) => {}
            Err(error) => return Some(Err(error.into())),
        }
        let trouble = self.trouble.take().map(Cause::Verbs);
        ended.or(trouble).map(Err)
    }

    /// Both may tell of the end.
    fn wait(&mut self, key: u64, waker: &Waker) {
        self.tracked.mailbox().wait(key, waker);
        self.trouble = self.join(key, waker).err();
    }

    fn leave(&mut self, key: u64) {
        if let Some(channel) = self.queue.channel() {
            self.tracked.hub().leave_queue(channel, key);
        }
        self.tracked.mailbox().leave(key);
    }
}
