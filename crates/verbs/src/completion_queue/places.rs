//! Where completions are put.
//!
//! # Safety
//! One of the modules with `unsafe`: completions are put beyond the length of a vector, whose
//! length is set once all are there.
#![expect(unsafe_code, reason = "completions beyond the length of a vector")]
#![expect(clippy::inline_always, reason = "completions are moved only once")]

use std::mem::MaybeUninit;

use crate::completion::Completion;

/// Places for completions, to be filled in order.
pub(crate) trait Places {
    /// A place.
    type Place<'a>: Place
    where
        Self: 'a;

    /// The next place, which is empty; `None` if all are filled.
    fn next(&mut self) -> Option<Self::Place<'_>>;
}

/// An empty place.
pub(crate) trait Place {
    /// Puts a completion into it, where it stays.
    fn put(self, completion: Completion);
}

/// A single place.
#[derive(Debug)]
pub(super) struct Single<'a>(pub(super) &'a mut Option<Completion>);

impl Places for Single<'_> {
    type Place<'a>
        = &'a mut Option<Completion>
    where
        Self: 'a;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Place<'_>> {
        self.0.is_none().then_some(&mut *self.0)
    }
}

impl Place for &mut Option<Completion> {
    #[inline(always)]
    fn put(self, completion: Completion) {
        // It is empty: otherwise the completion that is there is lost, and its memory leaked.
        debug_assert!(self.is_none());
        std::mem::forget(self.replace(completion));
    }
}

/// The places beyond the length of a vector.
#[derive(Debug)]
pub(crate) struct Spare<'a> {
    places: &'a mut [MaybeUninit<Completion>],
    /// How many are filled, from the first one on.
    filled: usize,
}

/// The first place beyond the length of a vector that is not filled.
#[derive(Debug)]
pub(crate) struct SparePlace<'a> {
    place: &'a mut MaybeUninit<Completion>,
    filled: &'a mut usize,
}

impl Places for Spare<'_> {
    type Place<'a>
        = SparePlace<'a>
    where
        Self: 'a;

    #[inline(always)]
    fn next(&mut self) -> Option<SparePlace<'_>> {
        let place = self.places.get_mut(self.filled)?;
        let filled = &mut self.filled;
        Some(SparePlace { place, filled })
    }
}

impl Place for SparePlace<'_> {
    #[inline(always)]
    fn put(self, completion: Completion) {
        self.place.write(completion);
        *self.filled += 1;
    }
}

/// Appends up to `limit` completions, which `put` puts into the places that it is passed.
/// Returns how many, and what `put` has returned. If that panics, they are lost.
#[inline(always)]
pub(crate) fn append<T>(
    completions: &mut Vec<Completion>,
    limit: usize,
    put: impl FnOnce(&mut Spare<'_>) -> T,
) -> (usize, T) {
    completions.reserve(limit);
    let length = completions.len();
    let places = completions.spare_capacity_mut();
    let limit = limit.min(places.len());
    let mut spare = Spare {
        places: places.get_mut(..limit).unwrap_or_default(),
        filled: 0,
    };
    let outcome = put(&mut spare);
    let count = spare.filled;
    // SAFETY:
    // - As many places are within the capacity, from the end on.
    // - They hold completions: only `SparePlace::put` counts, which fills the first of them that
    //   is not filled. This is the only `Spare` there is, so it is the one that was passed.
    unsafe { completions.set_len(length + count) };
    (count, outcome)
}
