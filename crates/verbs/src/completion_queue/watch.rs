//! Watching for the next completion.

use std::fmt;
use std::sync::atomic::Ordering;

use super::CompletionQueue;
use crate::fork_detector::ForkDetector;
use crate::provider::HintWatch;

impl CompletionQueue {
    /// Returns a cheap check for busy polling: has the device written another completion? It takes
    /// no lock unless the queue was resized. Poll now and then as well.
    #[must_use]
    #[inline]
    pub fn watch(&self) -> CompletionWatch<'_> {
        let queue = &*self.0;
        let source = match &queue.hint {
            Some(hint)
                if !queue.is_resized.load(Ordering::Relaxed)
                    && queue.fork_detector.is_same_process() =>
            {
                let next_slot = queue.next_slot.load(Ordering::Relaxed);
                Source::Hint(hint.watch(next_slot), &queue.fork_detector)
            }
            _ => Source::Queue(self),
        };
        CompletionWatch { source }
    }

    /// Whether the device has written a completion that was not polled for: one look of a
    /// [`watch`](Self::watch). It may be `false` although a poll returns something, see
    /// [`CompletionWatch::may_have_completions`].
    #[must_use]
    #[inline]
    pub fn may_have_completions(&self) -> bool {
        self.watch().may_have_completions()
    }
}

/// Tells whether the device has written a completion. Valid until the queue is polled or resized;
/// then call [`CompletionQueue::watch`] again.
#[derive(Clone, Copy)]
pub struct CompletionWatch<'queue> {
    source: Source<'queue>,
}

#[derive(Clone, Copy)]
enum Source<'queue> {
    Hint(HintWatch<'queue>, &'queue ForkDetector),
    /// It has no hint any more.
    Queue(&'queue CompletionQueue),
}

/// Loads nothing: a forked child has no ring.
impl fmt::Debug for CompletionWatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompletionWatch").finish_non_exhaustive()
    }
}

impl CompletionWatch<'_> {
    /// Whether the device has written a completion that was not polled for.
    ///
    /// It may be `false` although a poll returns something that the device has not written, or
    /// that was taken out of the ring before: a request that is reported with another one, a
    /// flushed request, an error, the removal of the device. Use
    /// [`has_completions`](CompletionQueue::has_completions) before sleeping until the queue
    /// notifies.
    #[must_use]
    #[inline]
    pub fn may_have_completions(&self) -> bool {
        match self.source {
            // A forked child has no ring.
            Source::Hint(hint, fork_detector) => !fork_detector.is_same_process() || hint.has_any(),
            Source::Queue(queue) => queue.has_completions(),
        }
    }
}
