//! Queues of requests, which the program fills.

use super::ring::Ring;
use super::slots::Slots;

/// A send or receive queue in the format of its device. The elements have numbers, in the
/// order in which the program posts them.
#[derive(Debug)]
pub(super) enum WorkQueue {
    Rxe(Ring),
    Siw(Slots),
}

impl WorkQueue {
    /// How many elements it holds.
    pub(super) fn capacity(&self) -> u32 {
        match self {
            Self::Rxe(ring) => ring.capacity(),
            Self::Siw(slots) => slots.capacity(),
        }
    }

    /// The element of this number, if it is posted. `oldest` is the number of the first
    /// that is not released.
    pub(super) fn posted(&self, number: u32, oldest: u32) -> Option<Vec<u8>> {
        if number.wrapping_sub(oldest) >= self.capacity() {
            return None;
        }
        match self {
            Self::Rxe(ring) => ring.posted(number),
            Self::Siw(slots) => slots.posted(number),
        }
    }

    /// Whether at least so many elements are posted from this one on, the first that is not
    /// released.
    fn has_posted(&self, count: u32, oldest: u32) -> bool {
        match (self, count.checked_sub(1)) {
            (_, None) => true,
            (Self::Rxe(ring), Some(_)) => ring.len() >= count,
            (Self::Siw(slots), Some(last)) => slots.posted(oldest.wrapping_add(last)).is_some(),
        }
    }

    /// Gives the slot of the oldest element back to the program.
    pub(super) fn release(&self, number: u32) {
        match self {
            Self::Rxe(ring) => ring.set_consumer(number.wrapping_add(1)),
            Self::Siw(slots) => slots.release(number),
        }
    }
}

/// A position in a queue whose elements are taken one by one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken(u32);

impl Taken {
    /// Takes the next element and releases its slot.
    pub(super) fn take(&mut self, queue: &WorkQueue) -> Option<Vec<u8>> {
        let element = queue.posted(self.0, self.0)?;
        queue.release(self.0);
        self.0 = self.0.wrapping_add(1);
        Some(element)
    }

    /// Whether at least so many elements are left, not more than the queue holds.
    pub(super) fn has_left(self, count: u32, queue: &WorkQueue) -> bool {
        queue.has_posted(count, self.0)
    }
}
