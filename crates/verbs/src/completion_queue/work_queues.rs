//! The work queues whose requests complete on a completion queue.

use crate::request_id::{Queue, QueueIndex};
use crate::work_queue::{AnyWorkQueue, SharedReceiveRing, WorkQueue};

/// The work queues, by the indices in their requests' ids.
#[derive(Debug, Default)]
pub(super) struct WorkQueues {
    own: Vec<Place>,
    /// The first place without a queue.
    free: Option<usize>,
    /// Few, if any.
    shared: Vec<Shared>,
}

/// The place of a queue pair's queue.
#[derive(Debug)]
struct Place {
    /// The index of the queue that is in it, or of the next one.
    index: QueueIndex,
    queue: Option<AnyWorkQueue>,
    /// The next place without a queue, if this is one.
    next_free: Option<usize>,
}

/// A shared receive queue.
#[derive(Debug)]
struct Shared {
    token: u32,
    queue: AnyWorkQueue,
    /// How many queue pairs use it.
    queue_pairs: u32,
    /// The credits that are reserved for all of its requests at once.
    credits: u32,
}

impl WorkQueues {
    /// Reserves an index; `None` if there are too many.
    pub(super) fn reserve(&mut self) -> Option<QueueIndex> {
        if let Some(free) = self.free {
            let place = self.own.get_mut(free)?;
            self.free = place.next_free.take();
            return Some(place.index);
        }
        let index = QueueIndex::own(self.own.len())?;
        if self.own.len() == self.own.capacity() {
            // Most completion queues serve one or two work queues.
            self.own.reserve_exact(self.own.len().max(2));
        }
        self.own.push(Place {
            index,
            queue: None,
            next_free: None,
        });
        Some(index)
    }

    /// Adds a queue at a reserved index.
    pub(super) fn insert(&mut self, index: QueueIndex, queue: AnyWorkQueue) {
        if let Some((_, place)) = self.place(index) {
            place.queue = Some(queue);
        }
    }

    /// The place of a reserved index.
    fn place(&mut self, index: QueueIndex) -> Option<(usize, &mut Place)> {
        let Queue::Own(number) = index.queue() else {
            return None;
        };
        let place = self.own.get_mut(number)?;
        (place.index == index).then_some((number, place))
    }

    /// One more queue pair uses this shared queue; `false` if it was not added before.
    pub(super) fn join(&mut self, token: u32) -> bool {
        let shared = self.shared.iter_mut().find(|one| one.token == token);
        shared.map(|shared| shared.queue_pairs += 1).is_some()
    }

    /// Adds a shared queue, with its first queue pair.
    pub(super) fn insert_shared(&mut self, token: u32, queue: SharedReceiveRing, credits: u32) {
        self.shared.push(Shared {
            token,
            queue: AnyWorkQueue::Shared(queue),
            queue_pairs: 1,
            credits,
        });
    }

    /// The queue of this index, if it is a queue pair's.
    #[inline]
    pub(super) fn own(&mut self, index: QueueIndex) -> Option<&mut AnyWorkQueue> {
        // No place has the index of a shared queue.
        let place = self.own.get_mut(index.place())?;
        let queue = place.queue.as_mut()?;
        (place.index == index).then_some(queue)
    }

    /// The queue of this index.
    pub(super) fn get(&mut self, index: QueueIndex) -> Option<&mut dyn WorkQueue> {
        match index.queue() {
            Queue::Own(place) => {
                let place = self.own.get_mut(place)?;
                let queue = place.queue.as_mut()?;
                (place.index == index).then(|| queue.get())
            }
            Queue::Shared(token) => {
                let shared = self.shared.iter_mut().find(|one| one.token == token);
                shared.map(|shared| shared.queue.get())
            }
        }
    }

    /// All of them, with their indices.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (QueueIndex, &mut dyn WorkQueue)> {
        let own = self.own.iter_mut().filter_map(|place| {
            let queue = place.queue.as_mut()?.get();
            Some((place.index, queue))
        });
        let shared = self.shared.iter_mut().map(|one| {
            let queue = one.queue.get();
            (QueueIndex::shared(one.token), queue)
        });
        own.chain(shared)
    }

    /// Removes a queue pair's queue, or a reserved index.
    pub(super) fn remove_own(&mut self, index: QueueIndex) {
        let free = self.free;
        if let Some((number, place)) = self.place(index) {
            place.index = index.next();
            place.queue = None;
            place.next_free = free;
            self.free = Some(number);
        }
    }

    /// Removes a queue pair of a shared queue. Returns the queue and its credits if no queue pair
    /// uses it any more.
    pub(super) fn remove_shared(&mut self, token: u32) -> Option<(AnyWorkQueue, u32)> {
        let place = self.shared.iter().position(|one| one.token == token)?;
        let shared = self.shared.get_mut(place)?;
        shared.queue_pairs -= 1;
        if shared.queue_pairs > 0 {
            return None;
        }
        let shared = self.shared.swap_remove(place);
        Some((shared.queue, shared.credits))
    }
}
