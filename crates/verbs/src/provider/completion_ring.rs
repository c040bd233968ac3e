//! Completion queues that this process shares with a device.

use std::sync::atomic::{AtomicU8, Ordering};

use rdmacm_abi::uverbs::WorkCompletion;

use super::{IndexWatch, RingIndices, SlotBytes, Uverbs, of_driver, rxe, siw};
use crate::error::Result;

/// A completion queue in memory shared with the device.
pub(crate) trait CompletionRing {
    /// How many completions it holds.
    fn capacity(&self) -> u32;

    /// The oldest completion, if there is one, and its place. It stays in the queue. What the
    /// caller does not use is not read.
    fn oldest(&self) -> Option<(u32, WorkCompletion)>;

    /// Whether there is one.
    #[inline]
    fn has_any(&self) -> bool {
        self.oldest().is_some()
    }

    /// What tells without the ring whether there is one; `None` if only the ring does.
    fn hint(&self) -> Option<CompletionHint> {
        None
    }

    /// The slot of the next completion, if the hint needs it.
    #[inline]
    fn next_slot(&self) -> Option<u32> {
        None
    }

    /// Removes the oldest completion, which is at this place: that is the device's again.
    fn remove(&mut self, place: u32);

    /// Takes the oldest completion.
    #[inline]
    fn pop(&mut self) -> Option<WorkCompletion> {
        let (place, completion) = self.oldest()?;
        self.remove(place);
        Some(completion)
    }

    /// Requests a notification on the queue's channel for the next completion; `false` if that
    /// takes a command.
    fn arm(&mut self) -> bool {
        false
    }

    /// Whether the driver resizes completion queues at all.
    fn can_resize(&self) -> bool {
        true
    }

    /// Resizes it to hold at least `entries` completions.
    ///
    /// # Errors
    /// Those of [`Uverbs::ask`]: the queue is unchanged. Those of [`Uverbs::map`]: the
    /// context is closed, because the queue is lost.
    fn resize(&mut self, uverbs: &Uverbs, queue: u32, entries: u32) -> Result<()>;
}

/// What tells without the ring whether there is a completion. It reads memory that the device
/// writes, but takes nothing out, so that any thread may use it.
#[derive(Debug)]
pub(crate) enum CompletionHint {
    /// The indices of rxe's ring.
    Indices(RingIndices),
    /// The flags of siw's slots.
    Flags(SlotBytes),
}

impl CompletionHint {
    /// Begins to watch for the next completion. `next_slot` is its slot, which rxe's indices do
    /// not need.
    #[inline]
    pub(crate) fn watch(&self, next_slot: u32) -> HintWatch<'_> {
        match self {
            Self::Indices(indices) => HintWatch::Index(indices.watch()),
            Self::Flags(flags) => HintWatch::Flag(flags.get(next_slot)),
        }
    }
}

/// The place where the next completion shows.
#[derive(Clone, Copy)]
pub(crate) enum HintWatch<'hint> {
    /// The producer's index of rxe's ring.
    Index(IndexWatch<'hint>),
    /// The flags of siw's next slot.
    Flag(&'hint AtomicU8),
}

impl HintWatch<'_> {
    /// Whether the device has written it.
    #[inline]
    pub(crate) fn has_any(self) -> bool {
        match self {
            Self::Index(index) => index.has_moved(),
            Self::Flag(flags) => siw::is_valid(flags.load(Ordering::Relaxed)),
        }
    }
}

/// The completion queue of one of the drivers.
#[derive(Debug)]
pub(crate) enum CompletionRings {
    /// Of rxe.
    Rxe(rxe::CompletionQueue),
    /// Of siw.
    Siw(siw::CompletionQueue),
    /// Of the tests.
    #[cfg(test)]
    Stub(super::stub::Ring),
}

impl CompletionRing for CompletionRings {
    fn capacity(&self) -> u32 {
        of_driver!(self, ring => ring.capacity())
    }

    fn oldest(&self) -> Option<(u32, WorkCompletion)> {
        of_driver!(self, ring => ring.oldest())
    }

    #[inline]
    fn has_any(&self) -> bool {
        of_driver!(self, ring => ring.has_any())
    }

    fn hint(&self) -> Option<CompletionHint> {
        of_driver!(self, ring => ring.hint())
    }

    fn next_slot(&self) -> Option<u32> {
        of_driver!(self, ring => ring.next_slot())
    }

    #[inline]
    fn remove(&mut self, place: u32) {
        of_driver!(self, ring => ring.remove(place));
    }

    fn arm(&mut self) -> bool {
        of_driver!(self, ring => ring.arm())
    }

    fn can_resize(&self) -> bool {
        of_driver!(self, ring => ring.can_resize())
    }

    fn resize(&mut self, uverbs: &Uverbs, queue: u32, entries: u32) -> Result<()> {
        of_driver!(self, ring => ring.resize(uverbs, queue, entries))
    }
}
