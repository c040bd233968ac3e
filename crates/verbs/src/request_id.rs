//! The numbers by which a device names requests.

/// What the device repeats in the completion of a request: where the completion queue finds
/// the work queue, and the request's number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestId {
    pub(crate) queue: QueueIndex,
    pub(crate) number: u32,
}

/// Where a completion queue finds a work queue. A place is used again after the kernel has
/// destroyed its queue pair, with another index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueIndex(u32);

/// Set for shared receive queues, which are in several completion queues.
pub(crate) const SHARED: u32 = 1 << 31;
/// The bits of the slot; those above it count how often the slot was used, from 1: no id of a
/// request is 0, because a replaced ring may read as zeros.
const SLOT_MASK: u32 = (1 << 22) - 1;
const FIRST_USE: u32 = SLOT_MASK + 1;

/// How to find the queue of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// The work queue of a queue pair, by its place in the completion queue.
    Own(usize),
    /// A shared receive queue, by its number.
    Shared(u32),
}

impl QueueIndex {
    /// The first index of a place; `None` if there are too many.
    pub(crate) fn own(slot: usize) -> Option<Self> {
        let slot = u32::try_from(slot).ok()?;
        (slot <= SLOT_MASK).then_some(Self(slot | FIRST_USE))
    }

    /// The next index of the same place.
    pub(crate) fn next(self) -> Self {
        let next = (self.0 + FIRST_USE) & !SHARED;
        Self(if next <= SLOT_MASK {
            next | FIRST_USE
        } else {
            next
        })
    }

    /// That of a shared receive queue, whose number is below 2³¹.
    pub(crate) fn shared(number: u32) -> Self {
        Self(number | SHARED)
    }

    /// The place, if it is that of a queue pair's work queue.
    #[inline]
    pub(crate) fn slot(self) -> usize {
        (self.0 & SLOT_MASK) as usize
    }

    pub(crate) fn queue(self) -> Queue {
        if self.0 & SHARED == 0 {
            Queue::Own(self.slot())
        } else {
            Queue::Shared(self.0 & !SHARED)
        }
    }
}

impl RequestId {
    pub(crate) fn from_device(id: u64) -> Self {
        let [queue, number] = [id >> 32, id & 0xffff_ffff];
        Self {
            // Each is a half.
            queue: QueueIndex(u32::try_from(queue).unwrap_or_default()),
            number: u32::try_from(number).unwrap_or_default(),
        }
    }

    pub(crate) fn to_device(self) -> u64 {
        u64::from(self.queue.0) << 32 | u64::from(self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_repeats_queue_and_number() {
        for (index, queue) in [
            (QueueIndex::own(7).unwrap(), Queue::Own(7)),
            (QueueIndex::own(7).unwrap().next(), Queue::Own(7)),
            (QueueIndex::shared(9), Queue::Shared(9)),
        ] {
            let id = RequestId {
                queue: index,
                number: u32::MAX,
            };
            assert_eq!(RequestId::from_device(id.to_device()), id);
            assert_eq!(id.queue.queue(), queue);
        }
        assert_eq!(QueueIndex::own(1 << 22), None);
    }

    #[test]
    fn no_request_of_any_queue_has_the_id_0() {
        let mut queue = QueueIndex::own(0).unwrap();
        for _ in 0..1024 {
            assert_ne!(RequestId { queue, number: 0 }.to_device(), 0);
            queue = queue.next();
        }
        let queue = QueueIndex::shared(0);
        assert_ne!(RequestId { queue, number: 0 }.to_device(), 0);
    }

    #[test]
    fn a_place_has_another_index_when_it_is_used_again() {
        let first = QueueIndex::own(7).unwrap();
        let mut index = first;
        for _ in 1..511 {
            index = index.next();
            assert_ne!(index, first);
            assert_eq!(index.queue(), Queue::Own(7));
        }
        assert_eq!(index.next(), first);
    }
}
