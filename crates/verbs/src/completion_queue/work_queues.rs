//! The work queues whose requests complete on a completion queue.

use crate::request_id::{Queue, QueueIndex};
use crate::work_queue::WorkQueue;

/// The work queues, by the indices in their requests' ids.
#[derive(Debug, Default)]
pub(super) struct WorkQueues {
    own: Vec<Place>,
    /// Places without a queue.
    free: Vec<usize>,
    /// Few, if any.
    shared: Vec<Shared>,
}

/// The place of a queue pair's queue.
#[derive(Debug)]
struct Place {
    /// The index of the queue that is in it, or of the next one.
    index: QueueIndex,
    queue: Option<Box<dyn WorkQueue>>,
}

/// A shared receive queue.
#[derive(Debug)]
struct Shared {
    token: u32,
    queue: Box<dyn WorkQueue>,
    /// How many queue pairs use it.
    queue_pairs: u32,
    /// The credits that are reserved for all of its requests at once.
    credits: u32,
}

impl WorkQueues {
    /// Reserves an index; `None` if there are too many.
    pub(super) fn reserve(&mut self) -> Option<QueueIndex> {
        if let Some(place) = self.free.pop() {
            return self.own.get(place).map(|place| place.index);
        }
        let index = QueueIndex::own(self.own.len())?;
        self.own.push(Place { index, queue: None });
        Some(index)
    }

    /// Adds a queue at a reserved index.
    pub(super) fn insert(&mut self, index: QueueIndex, queue: Box<dyn WorkQueue>) {
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
    pub(super) fn insert_shared(&mut self, token: u32, queue: Box<dyn WorkQueue>, credits: u32) {
        self.shared.push(Shared {
            token,
            queue,
            queue_pairs: 1,
            credits,
        });
    }

    /// The queue of this index.
    #[inline]
    pub(super) fn get(&mut self, index: QueueIndex) -> Option<&mut (dyn WorkQueue + 'static)> {
        match index.queue() {
            Queue::Own(place) => {
                let place = self.own.get_mut(place)?;
                let queue = place.queue.as_deref_mut()?;
                (place.index == index).then_some(queue)
            }
            Queue::Shared(token) => {
                let shared = self.shared.iter_mut().find(|one| one.token == token);
                shared.map(|shared| -> &mut dyn WorkQueue { &mut *shared.queue })
            }
        }
    }

    /// All of them, with their indices.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (QueueIndex, &mut dyn WorkQueue)> {
        let own = self.own.iter_mut().filter_map(|place| {
            let queue: &mut dyn WorkQueue = place.queue.as_deref_mut()?;
            Some((place.index, queue))
        });
        let shared = self.shared.iter_mut().map(|one| {
            let queue: &mut dyn WorkQueue = &mut *one.queue;
            (QueueIndex::shared(one.token), queue)
        });
        own.chain(shared)
    }

    /// Removes a queue or a reserved index, or a queue pair of a shared queue. Returns the queue
    /// and its credits if no queue pair uses it any more.
    pub(super) fn remove(&mut self, index: QueueIndex) -> Option<(Box<dyn WorkQueue>, u32)> {
        match index.queue() {
            Queue::Own(_) => {
                let (number, place) = self.place(index)?;
                place.index = index.next();
                let queue = place.queue.take();
                self.free.push(number);
                Some((queue?, 0))
            }
            Queue::Shared(token) => {
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
    }
}
