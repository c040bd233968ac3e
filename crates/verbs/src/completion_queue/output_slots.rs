//! Where completions are put.
//!
//! # Safety
//! One of the modules with `unsafe`: completions are put beyond the length of a vector, whose
//! length is set once all are there.
#![expect(unsafe_code, reason = "completions beyond the length of a vector")]
#![expect(clippy::inline_always, reason = "completions are moved only once")]

use std::mem::MaybeUninit;

use crate::completion::Completion;
use crate::error::Result;

/// Slots for completions, to be filled in order.
pub(crate) trait OutputSlots {
    /// A slot.
    type Slot<'a>: OutputSlot
    where
        Self: 'a;

    /// The next slot, which is empty; `None` if all are filled.
    fn next(&mut self) -> Option<Self::Slot<'_>>;
}

/// An empty slot.
pub(crate) trait OutputSlot {
    /// Puts a completion into it, where it stays.
    fn put(self, completion: Completion);
}

/// The result of a poll as a single slot, which is empty if it is `Ok(None)`.
#[derive(Debug)]
pub(super) struct Single<'a>(pub(super) &'a mut Result<Option<Completion>>);

impl OutputSlots for Single<'_> {
    type Slot<'a>
        = &'a mut Result<Option<Completion>>
    where
        Self: 'a;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Slot<'_>> {
        matches!(self.0, Ok(None)).then_some(&mut *self.0)
    }
}

impl OutputSlot for &mut Result<Option<Completion>> {
    #[inline(always)]
    fn put(self, completion: Completion) {
        // It is empty: otherwise the completion that is there is lost, and its memory leaked.
        debug_assert!(matches!(self, Ok(None)));
        std::mem::forget(std::mem::replace(self, Ok(Some(completion))));
    }
}

/// The slots beyond the length of a vector.
#[derive(Debug)]
pub(crate) struct Spare<'a> {
    slots: &'a mut [MaybeUninit<Completion>],
    /// How many are filled, from the first one on.
    filled: usize,
}

/// The first slot beyond the length of a vector that is not filled.
#[derive(Debug)]
pub(crate) struct SpareSlot<'a> {
    slot: &'a mut MaybeUninit<Completion>,
    filled: &'a mut usize,
}

impl OutputSlots for Spare<'_> {
    type Slot<'a>
        = SpareSlot<'a>
    where
        Self: 'a;

    #[inline(always)]
    fn next(&mut self) -> Option<SpareSlot<'_>> {
        let slot = self.slots.get_mut(self.filled)?;
        let filled = &mut self.filled;
        Some(SpareSlot { slot, filled })
    }
}

impl OutputSlot for SpareSlot<'_> {
    #[inline(always)]
    fn put(self, completion: Completion) {
        self.slot.write(completion);
        *self.filled += 1;
    }
}

/// Appends up to `limit` completions, which `put` puts into the slots that it is passed.
/// Returns how many, and what `put` has returned. If that panics, they are lost.
#[inline(always)]
pub(crate) fn append<T>(
    completions: &mut Vec<Completion>,
    limit: usize,
    put: impl FnOnce(&mut Spare<'_>) -> T,
) -> (usize, T) {
    completions.reserve(limit);
    let length = completions.len();
    let slots = completions.spare_capacity_mut();
    let limit = limit.min(slots.len());
    let mut spare = Spare {
        slots: slots.get_mut(..limit).unwrap_or_default(),
        filled: 0,
    };
    let outcome = put(&mut spare);
    let count = spare.filled;
    // SAFETY:
    // - As many slots are within the capacity, from the end on.
    // - They hold completions: only `SpareSlot::put` counts, which fills the first of them that
    //   is not filled. This is the only `Spare` there is, so it is the one that was passed.
    unsafe { completions.set_len(length + count) };
    (count, outcome)
}
